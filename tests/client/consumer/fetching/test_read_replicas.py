"""Where to read from."""

from __future__ import annotations

from ottla.client.consumer.fetching.read_replicas import ReadReplicas
from ottla.model import Node, TopicPartition
from tests.client.consumer.assignors.clusters import cluster_of

A = TopicPartition("t", 0)
CLUSTER = cluster_of({"t": [[1, 2]]}, {1: "east", 2: "west"})
LEADER, NEAR = CLUSTER.nodes[1], CLUSTER.nodes[2]


def test_the_leader_is_read_from_until_it_names_a_replica_and_again_after_a_while() -> None:
    replicas = ReadReplicas(max_age_ms=10_000)
    assert replicas.node(A, CLUSTER, 0) == LEADER
    replicas.prefer(A, 2, 0)
    assert [replicas.node(A, CLUSTER, now) for now in (0, 9, 10, 5)] == [NEAR, NEAR, LEADER, LEADER]


def test_a_replica_that_is_gone_from_the_cluster_is_forgotten() -> None:
    replicas = ReadReplicas(max_age_ms=10_000)
    replicas.prefer(A, 2, 0)
    assert replicas.node(A, cluster_of({"t": [[1, 2]]}, {1: "east"}), 1) == Node(1, "host", 1, "east")
    assert replicas.node(A, CLUSTER, 1) == LEADER


def test_a_partition_that_was_read_from_a_replica_is_told_when_it_is_forgotten() -> None:
    replicas = ReadReplicas(max_age_ms=10_000)
    replicas.prefer(A, 2, 0)
    assert replicas.clear_preferred([A, TopicPartition("t", 1)]) == [A]
    assert replicas.clear_preferred([A]) == []
