"""Clusters and assignments for the tests of assignors."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence

from ottla.client.consumer.assignors import Assignment, Assignor, Subscription
from ottla.client.metadata.metadata_snapshot import KnownTopic, MetadataSnapshot
from ottla.model import Node, PartitionInfo, TopicPartition

Shares = dict[str, frozenset[TopicPartition]]


def cluster_of(topics: Mapping[str, Sequence[Sequence[int]]], nodes: Mapping[int, str | None]) -> MetadataSnapshot:
    """A cluster with these topics; of each partition, the nodes that hold it."""
    return MetadataSnapshot(
        nodes={node: Node(node, "host", 1, rack) for node, rack in nodes.items()},
        topics={name: topic_of(name, partitions) for name, partitions in topics.items()},
    )


def topic_of(name: str, partitions: Sequence[Sequence[int]]) -> KnownTopic:
    infos = [
        PartitionInfo(name, number, held[0] if held else -1, 0, tuple(held), tuple(held))
        for number, held in enumerate(partitions)
    ]
    return KnownTopic(name, uuid.UUID(int=1), False, tuple(infos))


def plain(**counts: int) -> MetadataSnapshot:
    """A cluster without racks: topics and their numbers of partitions."""
    return cluster_of({name: [[]] * count for name, count in counts.items()}, {})


def members(*names: str, topics: Sequence[str]) -> dict[str, Subscription]:
    """Members with the same subscription."""
    return {name: Subscription(topics=topics) for name in names}


def shares_of(assignments: Mapping[str, Assignment]) -> Shares:
    """Return the owner of each partition; each partition must occur once."""
    shares = {member: frozenset(assignment.partitions) for member, assignment in assignments.items()}
    assert all(len(shares[member]) == len(assignments[member].partitions) for member in shares)
    return shares


def format_assignments(
    assignor: Assignor, cluster: MetadataSnapshot, subscriptions: Mapping[str, Subscription]
) -> dict[str, str]:
    """Format assignments as text such as `t0p1 t0p2`."""
    shares = shares_of(assignor.assign(cluster, subscriptions))
    return {member: " ".join(f"{tp.topic}p{tp.partition}" for tp in sorted(shares[member])) for member in shares}
