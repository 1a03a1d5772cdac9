"""Which members are near which partitions (KIP-881)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from ottla.client.consumer.assignors.assignor import Subscription
from ottla.client.metadata.cluster import Cluster
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


class Nearness:
    """Members and partitions of a group, where it matters who is near what; else it says of nothing that it is far."""

    def __init__(self, racks: Mapping[str, str], places: PartitionRacks) -> None:
        matters = racks_matter(racks.values(), places)
        self.member_racks = racks if matters else {}
        """Of the members that tell one; empty where racks do not matter."""
        self._places = places if matters else {}
        by_rack = Counter(racks.values())
        self._members_near = {tp: sum(by_rack[rack] for rack in at) for tp, at in places.items()}

    @classmethod
    def of(cls, cluster: Cluster, counts: Mapping[str, int], subscriptions: Mapping[str, Subscription]) -> Nearness:
        """What the subscriptions and the cluster tell of racks."""
        racks = member_racks(subscriptions)
        return cls(racks, partition_racks(cluster, counts) if racks else {})

    def is_far(self, member: str, tp: TopicPartition) -> bool:
        """Whether the member's rack has no replica; one that tells no rack is far from nothing."""
        rack = self.member_racks.get(member)
        return rack is not None and rack not in self._places[tp]

    def rarest_first(self, partitions: list[TopicPartition]) -> list[TopicPartition]:
        """Those first that the fewest members are near to, as those have the least choice."""
        return sorted(partitions, key=lambda tp: self._members_near.get(tp, 0))

    def next_near(self, tp: TopicPartition, members: Sequence[str], first: int) -> int:
        """The place of the next member, in turn from `first`, whose rack has a replica; -1 where there is none."""
        at = self._places.get(tp)
        if at:
            for step in range(len(members)):
                index = (first + step) % len(members)
                if self.member_racks.get(members[index]) in at:
                    return index
        return -1
