"""Which members are near which partitions (KIP-881)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ottla.client.cluster import Cluster
from ottla.client.consumer.assignors.assignor import Subscription
from ottla.model import TopicPartition

PartitionRacks = Mapping[TopicPartition, frozenset[str]]


def member_racks(subscriptions: Mapping[str, Subscription]) -> dict[str, str]:
    """The rack of each member that tells one."""
    return {member: s.rack_id for member, s in subscriptions.items() if s.rack_id}


def partition_racks(cluster: Cluster, counts: Mapping[str, int]) -> dict[TopicPartition, frozenset[str]]:
    """The racks that hold a replica of each partition."""
    racks = {node_id: node.rack for node_id, node in cluster.nodes.items() if node.rack is not None}
    return {
        TopicPartition(topic, info.partition): frozenset(racks[node] for node in info.replicas if node in racks)
        for topic in counts
        for info in cluster.topics[topic].partitions
    }


def racks_matter(members: Iterable[str], partitions: PartitionRacks) -> bool:
    """Whether somebody is near something, and nearer to some partitions than to others."""
    everywhere = frozenset[str]().union(*partitions.values())
    return not everywhere.isdisjoint(members) and any(racks != everywhere for racks in partitions.values())
