"""The unavailable nodes of a cluster, and the effects of one more failure."""

from __future__ import annotations

from ottla.client.admin.cluster import ClusterDescription
from ottla.client.admin.health import (
    AWAY_MS,
    Absence,
    absence_sentence,
    health_of,
    next_failure_sentence,
)
from ottla.client.admin.quorum import QuorumInfo, QuorumReplicaState, RaftVoterEndpoint
from ottla.model import Node, PartitionInfo, TopicPartition

NOW_MS = 1_000_000
NODES = tuple(Node(id_, "h", 9090 + id_) for id_ in (1, 2, 3))


def replica(id_: int, fetched_ms: int | None) -> QuorumReplicaState:
    return QuorumReplicaState(id_, "", 7, fetched_ms, fetched_ms)


def quorum(*voters: QuorumReplicaState, observers: tuple[QuorumReplicaState, ...] = ()) -> QuorumInfo:
    return QuorumInfo(1, 1, 7, voters, observers, {3: (RaftVoterEndpoint("CONTROLLER", "h", 9193),)})


def partition(number: int, *in_sync: int, replicas: tuple[int, ...] = (1, 2, 3)) -> PartitionInfo:
    return PartitionInfo("orders", number, in_sync[0] if in_sync else -1, 0, replicas, in_sync)


WHOLE = quorum(replica(1, NOW_MS), replica(2, NOW_MS - 500), replica(3, NOW_MS - 500))


def test_a_healthy_cluster_has_no_offline_nodes_and_survives_the_next_failure() -> None:
    health = health_of(ClusterDescription(NODES, NODES[0], "c"), WHOLE, [partition(0, 1, 2, 3)], {"orders": 2})
    assert health.absences == ()
    assert health.worst is not None
    assert not health.worst.has_cost
    assert health.quorum is not None
    assert health.quorum.can_survive_one_more
    assert next_failure_sentence(health) == (
        "any one broker may fail, and every partition keeps a leader and min.insync.replicas"
    )


def test_a_stopped_node_is_offline_as_broker_and_voter_and_the_next_failure_loses_partitions_and_the_majority() -> None:
    cluster = ClusterDescription(NODES[:2], NODES[0], "c", fenced_nodes=NODES[2:])
    silent = quorum(replica(1, NOW_MS), replica(2, NOW_MS - 500), replica(3, NOW_MS - 60_000))
    partitions = [partition(0, 1, 2), partition(1, 2, replicas=(2, 3)), partition(2, 2, 1), partition(3)]
    health = health_of(cluster, silent, partitions, {"orders": 2})
    assert health.absences == (
        Absence("broker", 3, "h:9093", NOW_MS - 60_000),
        Absence("voter", 3, "h:9193", NOW_MS - 60_000),
    )
    assert health.worst == (
        2,
        (TopicPartition("orders", 1),),
        (TopicPartition("orders", 0), TopicPartition("orders", 2)),
    )
    assert health.quorum == (3, 2)
    assert next_failure_sentence(health) == (
        "if broker 2 failed, 1 partition would have no leader (orders-1) and 2 partitions would be below min.insync.replicas and reject "
        "acks=all (orders-0, orders-2); if one more voter failed, the quorum would lose its majority (2 of 3 run, 2 are needed): no leader "
        "is elected and no topic created then"
    )


def test_an_unlisted_broker_with_replicas_is_offline_even_without_other_facts() -> None:
    health = health_of(ClusterDescription(NODES[:2], NODES[0], "c"), None, [partition(0, 1, 2)], {})
    assert health.absences == (Absence("broker", 3, None, None),)
    assert (health.worst, health.quorum) == ((1, (), ()), None)


def test_a_voter_without_a_fetch_since_the_election_has_been_offline_since_before_it() -> None:
    health = health_of(ClusterDescription(NODES, NODES[0], "c"), quorum(replica(1, NOW_MS), replica(3, None)), [], {})
    (absence,) = health.absences
    assert absence == Absence("voter", 3, "h:9193", None)
    assert absence_sentence(absence, NOW_MS) == (
        "voter 3 (h:9193) is away, since before the leader of the quorum was elected"
    )


def test_a_silent_observer_is_offline_unless_it_is_reported_as_a_broker() -> None:
    late = replica(4, NOW_MS - AWAY_MS - 1)
    found = quorum(replica(1, NOW_MS), observers=(late, replica(5, NOW_MS - AWAY_MS)))
    health = health_of(ClusterDescription(NODES, NODES[0], "c"), found, [], {})
    assert health.absences == (Absence("observer", 4, None, late.last_fetch_timestamp),)
    fenced = ClusterDescription(NODES, NODES[0], "c", fenced_nodes=(Node(4, "h", 9094),))
    assert health_of(fenced, found, [], {}).absences == (Absence("broker", 4, "h:9094", late.last_fetch_timestamp),)


def test_a_partition_already_below_its_minimum_is_not_lost_by_the_next_failure() -> None:
    two = ClusterDescription(NODES[:2], NODES[0], "c")
    assert health_of(two, None, [partition(0, 1, 2)], {"orders": 3}).worst == (1, (), ())


def test_a_single_broker_has_no_next_failure_to_report() -> None:
    alone = ClusterDescription(NODES[:1], NODES[0], "c")
    health = health_of(alone, quorum(replica(1, NOW_MS)), [partition(0, 1, replicas=(1,))], {})
    assert next_failure_sentence(health) == ""


def test_the_time_of_an_absence_is_a_date_and_its_length() -> None:
    sentence = absence_sentence(Absence("broker", 3, "h:9093", NOW_MS - 61_500), NOW_MS)
    assert sentence.startswith("broker 3 (h:9093) is away since 1970-01-01 ")
    assert sentence.endswith(" (61 s)")
