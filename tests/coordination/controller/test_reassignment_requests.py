"""Partitions are reassigned, leaders are elected, and replicas report their directories."""

from __future__ import annotations

from uuid import UUID

from ottla.coordination.controller.events import PreferredElectionDue, UncleanElectionDue
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


def test_a_partition_is_reassigned_while_its_leader_serves_and_the_new_replica_leads_at_the_end() -> None:
    cluster = Cluster(1, 2, 3)
    cluster.topic((1, 2))
    assert move(cluster, 3, 2).error_code == 0
    assert moving(cluster) == [OngoingTopicReassignment("t", [OngoingPartitionReassignment(0, (3, 2, 1), (3,), (1,))])]
    assert cluster.led() == (1, (1, 2))
    assert alter(cluster, 1, 1, 2, 3).error_code == ErrorCode.NEW_LEADER_ELECTED, "written, and told as an error"
    state = cluster.partition()
    assert (state.leader, state.leader_epoch, state.replicas, state.isr) == (3, 1, (3, 2), (2, 3))
    assert moving(cluster) == moving(cluster, "t", "u") == []


def test_a_cancelled_reassignment_restores_the_replicas() -> None:
    cluster = Cluster(1, 2, 3)
    cluster.topic((1, 2))
    assert move(cluster, stop=True).error_code == ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
    move(cluster, 3)
    assert move(cluster, stop=True).error_code == 0
    state = cluster.partition()
    assert (state.replicas, state.adding_replicas, state.removing_replicas, state.leader) == ((1, 2), (), (), 1)


def test_a_reassignment_is_not_cancelled_if_only_added_replicas_are_in_the_isr() -> None:
    cluster = Cluster(1, 2, 3, 4)
    cluster.topic((1,))
    move(cluster, 2, 3)
    alter(cluster, 1, 1, 2)
    cluster.wait(1)
    cluster.beat(2)
    cluster.wait(8)
    assert cluster.led() == (2, (2,))
    assert move(cluster, stop=True).error_code == ErrorCode.INVALID_REPLICA_ASSIGNMENT


def test_an_impossible_reassignment_is_rejected() -> None:
    cluster = Cluster(1, 2)
    cluster.topic((1, 2))
    assert move(cluster, 1, name="u").error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert move(cluster, 1, index=7).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert move(cluster, 1, 9).error_code == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert move(cluster).error_code == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert move(cluster, 1, same_count=True).error_code == ErrorCode.INVALID_REPLICATION_FACTOR
    assert move(cluster, 2, 1, same_count=True).error_code == 0


def test_the_preferred_replica_is_elected_on_request() -> None:
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


def test_preferred_leaders_are_elected_periodically() -> None:
    cluster = Cluster(1, 2)
    cluster.topic((1, 2), (2, 1))
    cluster.stop_cleanly(1)
    cluster.join(1, start=2)
    assert cluster.happen(PreferredElectionDue(1)) is False
    assert cluster.led(0) == (2, (2,)), "it is not in sync yet"
    alter(cluster, 2, 2, 1)
    cluster.happen(PreferredElectionDue(1))
    assert cluster.led(0) == (1, (2, 1))


def test_records_are_lost_only_in_a_requested_unclean_election() -> None:
    cluster = Cluster(1, 2, elr=False)
    cluster.topic((1, 2))
    alter(cluster, 1, 1)
    cluster.wait(5)
    cluster.beat(2)
    cluster.wait(5)
    assert cluster.led() == (-1, (1,))
    cluster.happen(UncleanElectionDue(1))
    assert cluster.led() == (-1, (1,))
    assert elect(cluster, 1, 0) == [(0, 0)]
    state = cluster.partition()
    assert (state.leader, state.isr, state.leader_recovery_state) == (2, (2,), 1)
    assert elect(cluster, 1, 0) == [(0, ErrorCode.ELECTION_NOT_NEEDED)]


def test_a_topic_with_unclean_elections_gets_a_leader_when_any_replica_is_active() -> None:
    cluster = Cluster(1, 2, elr=False, unclean=True)
    cluster.topic((1, 2))
    alter(cluster, 1, 1)
    cluster.wait(20)
    assert cluster.led() == (-1, (1,))
    cluster.beat(2)
    assert cluster.led() == (2, (2,))


def test_no_leader_is_elected_if_no_replica_is_active() -> None:
    cluster = Cluster(1, elr=False)
    cluster.topic((1,))
    cluster.wait(20)
    assert elect(cluster, 1, 0) == [(0, ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE)]
    assert cluster.ask(ElectLeadersRequest(7), ElectLeadersResponse).error_code == ErrorCode.INVALID_REQUEST


def place(cluster: Cluster, broker: int, where: UUID, *, topic_id: UUID = TOPIC, index: int = 0) -> int:
    topics = [RequestTopicData(topic_id, [RequestPartitionData(index)])]
    request = AssignReplicasToDirsRequest(broker, cluster.epoch(broker), [RequestDirectoryData(where, topics)])
    return cluster.ask(request, AssignReplicasToDirsResponse).directories[0].topics[0].partitions[0].error_code


def test_a_replica_is_in_the_directory_that_its_broker_assigned() -> None:
    cluster = Cluster(2)
    cluster.join(1, log_dirs=[directory(1), UUID(int=501)])
    cluster.topic((1, 2))
    assert place(cluster, 1, UUID(int=501)) == 0
    assert cluster.partition().directories == (UUID(int=501), directory(2))
    assert cluster.led() == (1, (1, 2))


def test_a_replica_assigned_to_an_unregistered_directory_loses_the_leadership() -> None:
    cluster = Cluster(1, 2)
    cluster.topic((1, 2))
    assert place(cluster, 1, UUID(int=777)) == 0
    assert cluster.led() == (2, (2,))


def test_a_directory_of_an_unknown_partition_is_rejected() -> None:
    cluster = Cluster(1, 2, 3)
    cluster.topic((1, 2))
    assert place(cluster, 1, directory(1), topic_id=UUID(int=9)) == ErrorCode.UNKNOWN_TOPIC_ID
    assert place(cluster, 1, directory(1), index=4) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert place(cluster, 3, directory(3)) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    stale = cluster.ask(AssignReplicasToDirsRequest(1, 1), AssignReplicasToDirsResponse)
    assert stale.error_code == ErrorCode.STALE_BROKER_EPOCH
