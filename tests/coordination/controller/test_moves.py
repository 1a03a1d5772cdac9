"""Partitions move to other brokers, leaders are elected, and copies say where they lie."""

from __future__ import annotations

from uuid import UUID

from ottla.coordination.controller.events import BalanceDue, RecoveryDue
from ottla.errors import ErrorCode
from ottla.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignablePartitionResponse,
    ReassignableTopic,
)
from ottla.protocol.messages.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
    RequestDirectoryData,
    RequestPartitionData,
    RequestTopicData,
)
from ottla.protocol.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse, TopicPartitions
from ottla.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    ListPartitionReassignmentsTopics,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
from tests.coordination.controller.cluster import TOPIC, Cluster, directory
from tests.coordination.controller.test_isr_changes import alter


def move(
    cluster: Cluster, *replicas: int, name: str = "t", index: int = 0, same_count: bool = False, stop: bool = False
) -> ReassignablePartitionResponse:
    wanted = ReassignableTopic(name, [ReassignablePartition(index, None if stop else replicas)])
    request = AlterPartitionReassignmentsRequest(allow_replication_factor_change=not same_count, topics=[wanted])
    return cluster.ask(request, AlterPartitionReassignmentsResponse).responses[0].partitions[0]


def moving(cluster: Cluster, *names: str) -> list[OngoingTopicReassignment]:
    named = [ListPartitionReassignmentsTopics(name, [0]) for name in names] or None
    answer = cluster.ask(ListPartitionReassignmentsRequest(topics=named), ListPartitionReassignmentsResponse)
    return list(answer.topics)


def elect(cluster: Cluster, kind: int, *partitions: int, name: str = "t") -> list[tuple[int, int]]:
    named = [TopicPartitions(name, partitions)] if partitions else None
    answer = cluster.ask(ElectLeadersRequest(kind, named), ElectLeadersResponse)
    assert not answer.error_code
    return [(p.partition_id, p.error_code) for each in answer.replica_election_results for p in each.partition_result]


def test_a_partition_moves_while_its_leader_serves_and_is_led_by_the_new_one_in_the_end() -> None:
    cluster = Cluster(1, 2, 3)
    cluster.topic((1, 2))
    assert move(cluster, 3, 2).error_code == 0
    assert moving(cluster) == [OngoingTopicReassignment("t", [OngoingPartitionReassignment(0, (3, 2, 1), (3,), (1,))])]
    assert cluster.led() == (1, (1, 2))
    assert alter(cluster, 1, 1, 2, 3).error_code == ErrorCode.NEW_LEADER_ELECTED, "written, and told as an error"
    state = cluster.partition()
    assert (state.leader, state.leader_epoch, state.replicas, state.isr) == (3, 1, (3, 2), (2, 3))
    assert moving(cluster) == moving(cluster, "t", "u") == []


def test_a_move_that_is_stopped_leaves_all_as_it_was() -> None:
    cluster = Cluster(1, 2, 3)
    cluster.topic((1, 2))
    assert move(cluster, stop=True).error_code == ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
    move(cluster, 3)
    assert move(cluster, stop=True).error_code == 0
    state = cluster.partition()
    assert (state.replicas, state.adding_replicas, state.removing_replicas, state.leader) == ((1, 2), (), (), 1)


def test_a_move_is_not_stopped_where_only_those_who_came_are_in_sync() -> None:
    cluster = Cluster(1, 2, 3, 4)
    cluster.topic((1,))
    move(cluster, 2, 3)
    alter(cluster, 1, 1, 2)
    cluster.wait(1)
    cluster.beat(2)
    cluster.wait(8)
    assert cluster.led() == (2, (2,))
    assert move(cluster, stop=True).error_code == ErrorCode.INVALID_REPLICA_ASSIGNMENT


def test_a_move_that_cannot_be_is_refused() -> None:
    cluster = Cluster(1, 2)
    cluster.topic((1, 2))
    assert move(cluster, 1, name="u").error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert move(cluster, 1, index=7).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert move(cluster, 1, 9).error_code == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert move(cluster).error_code == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert move(cluster, 1, same_count=True).error_code == ErrorCode.INVALID_REPLICATION_FACTOR
    assert move(cluster, 2, 1, same_count=True).error_code == 0


def test_the_preferred_replica_leads_again_when_it_is_asked_for() -> None:
    cluster = Cluster(1, 2)
    cluster.topic((1, 2), (2, 1))
    cluster.stop_cleanly(1)
    assert elect(cluster, 0, 0) == [(0, ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE)]
    cluster.join(1, start=2)
    alter(cluster, 2, 2, 1)
    assert elect(cluster, 0, 0, 1, 5) == [
        (0, 0),
        (1, ErrorCode.ELECTION_NOT_NEEDED),
        (5, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]
    assert cluster.led() == (1, (2, 1))
    assert elect(cluster, 0) == [], "of all, only those are told that needed one"


def test_leaders_go_back_to_the_preferred_replicas_by_themselves() -> None:
    cluster = Cluster(1, 2)
    cluster.topic((1, 2), (2, 1))
    cluster.stop_cleanly(1)
    cluster.join(1, start=2)
    assert cluster.happen(BalanceDue(1)) is False
    assert cluster.led(0) == (2, (2,)), "it is not in sync yet"
    alter(cluster, 2, 2, 1)
    cluster.happen(BalanceDue(1))
    assert cluster.led(0) == (1, (2, 1))


def test_records_are_lost_only_where_somebody_asks_for_it() -> None:
    cluster = Cluster(1, 2, elr=False)
    cluster.topic((1, 2))
    alter(cluster, 1, 1)
    cluster.wait(5)
    cluster.beat(2)
    cluster.wait(5)
    assert cluster.led() == (-1, (1,))
    cluster.happen(RecoveryDue(1))
    assert cluster.led() == (-1, (1,))
    assert elect(cluster, 1, 0) == [(0, 0)]
    state = cluster.partition()
    assert (state.leader, state.isr, state.leader_recovery_state) == (2, (2,), 1)
    assert elect(cluster, 1, 0) == [(0, ErrorCode.ELECTION_NOT_NEEDED)]


def test_where_losing_records_is_allowed_somebody_leads_as_soon_as_anybody_lives() -> None:
    cluster = Cluster(1, 2, elr=False, unclean=True)
    cluster.topic((1, 2))
    alter(cluster, 1, 1)
    cluster.wait(20)
    assert cluster.led() == (-1, (1,))
    cluster.beat(2)
    assert cluster.led() == (2, (2,))


def test_nobody_is_elected_where_nobody_lives() -> None:
    cluster = Cluster(1, elr=False)
    cluster.topic((1,))
    cluster.wait(20)
    assert elect(cluster, 1, 0) == [(0, ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE)]
    assert cluster.ask(ElectLeadersRequest(7), ElectLeadersResponse).error_code == ErrorCode.INVALID_REQUEST


def place(cluster: Cluster, broker: int, where: UUID, *, topic_id: UUID = TOPIC, index: int = 0) -> int:
    topics = [RequestTopicData(topic_id, [RequestPartitionData(index)])]
    request = AssignReplicasToDirsRequest(broker, cluster.epoch(broker), [RequestDirectoryData(where, topics)])
    return cluster.ask(request, AssignReplicasToDirsResponse).directories[0].topics[0].partitions[0].error_code


def test_a_copy_lies_where_its_broker_says() -> None:
    cluster = Cluster(2)
    cluster.join(1, log_dirs=[directory(1), UUID(int=501)])
    cluster.topic((1, 2))
    assert place(cluster, 1, UUID(int=501)) == 0
    assert cluster.partition().directories == (UUID(int=501), directory(2))
    assert cluster.led() == (1, (1, 2))


def test_a_copy_in_a_directory_that_is_gone_is_led_by_another() -> None:
    cluster = Cluster(1, 2)
    cluster.topic((1, 2))
    assert place(cluster, 1, UUID(int=777)) == 0
    assert cluster.led() == (2, (2,))


def test_a_place_of_what_is_not_there_is_refused() -> None:
    cluster = Cluster(1, 2, 3)
    cluster.topic((1, 2))
    assert place(cluster, 1, directory(1), topic_id=UUID(int=9)) == ErrorCode.UNKNOWN_TOPIC_ID
    assert place(cluster, 1, directory(1), index=4) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert place(cluster, 3, directory(3)) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    stale = cluster.ask(AssignReplicasToDirsRequest(1, 1), AssignReplicasToDirsResponse)
    assert stale.error_code == ErrorCode.STALE_BROKER_EPOCH
