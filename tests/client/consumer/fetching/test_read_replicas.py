"""The broker to fetch from."""

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
    replicas.set_preferred(A, 2, 0)
    assert [replicas.node(A, CLUSTER, now) for now in (0, 9, 10, 5)] == [NEAR, NEAR, LEADER, LEADER]


def test_a_read_replica_that_was_removed_from_the_cluster_is_no_longer_used() -> None:
    replicas = ReadReplicas(max_age_ms=10_000)
    replicas.set_preferred(A, 2, 0)
    assert replicas.node(A, cluster_of({"t": [[1, 2]]}, {1: "east"}), 1) == Node(1, "host", 1, "east")
    assert replicas.node(A, CLUSTER, 1) == LEADER


def test_forgetting_a_read_replica_returns_its_partition() -> None:
    replicas = ReadReplicas(max_age_ms=10_000)
    replicas.set_preferred(A, 2, 0)
    assert replicas.clear_preferred([A, TopicPartition("t", 1)]) == [A]
    assert replicas.clear_preferred([A]) == []
