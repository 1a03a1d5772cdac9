"""Rack-aware assignment: members that are in the rack of a replica (KIP-881)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from ottla.client.consumer.assignors.assignor import Subscription
from ottla.client.metadata.metadata_snapshot import MetadataSnapshot
from ottla.model import TopicPartition

PartitionRacks = Mapping[TopicPartition, frozenset[str]]


def member_racks(subscriptions: Mapping[str, Subscription]) -> dict[str, str]:
    """Return the rack of each member that states one."""
    return {member: s.rack_id for member, s in subscriptions.items() if s.rack_id}


def partition_racks(cluster: MetadataSnapshot, counts: Mapping[str, int]) -> dict[TopicPartition, frozenset[str]]:
    """Return the racks with a replica of each partition."""
    racks = {node_id: node.rack for node_id, node in cluster.nodes.items() if node.rack is not None}
    return {
        TopicPartition(topic, info.partition): frozenset(racks[node] for node in info.replicas if node in racks)
        for topic in counts
        for info in cluster.topics[topic].partitions
    }


def is_rack_aware(members: Iterable[str], partitions: PartitionRacks) -> bool:
    """Return True if some members are in the rack of a replica, and the racks of partitions differ."""
    everywhere = frozenset[str]().union(*partitions.values())
    return not everywhere.isdisjoint(members) and any(racks != everywhere for racks in partitions.values())


class Nearness:
    """The racks of members and partitions. If racks make no difference, no member is far from any partition."""

    def __init__(self, racks: Mapping[str, str], places: PartitionRacks) -> None:
        matters = is_rack_aware(racks.values(), places)
        self.member_racks = racks if matters else {}
        """The racks of the members; empty if racks make no difference."""
        self._places = places if matters else {}
        by_rack = Counter(racks.values())
        self._members_near = {tp: sum(by_rack[rack] for rack in at) for tp, at in places.items()}

    @classmethod
    def from_cluster(
        cls, cluster: MetadataSnapshot, counts: Mapping[str, int], subscriptions: Mapping[str, Subscription]
    ) -> Nearness:
        """Create it from the subscriptions and the cluster."""
        racks = member_racks(subscriptions)
        return cls(racks, partition_racks(cluster, counts) if racks else {})

    def is_far(self, member: str, tp: TopicPartition) -> bool:
        """Return True if no replica is in the member's rack. A member without a rack is far from nothing."""
        rack = self.member_racks.get(member)
        return rack is not None and rack not in self._places[tp]

    def sort_rarest_first(self, partitions: list[TopicPartition]) -> list[TopicPartition]:
        """Sort partitions with the fewest near members first, because these have the least choice."""
        return sorted(partitions, key=lambda tp: self._members_near.get(tp, 0))

    def next_near(self, tp: TopicPartition, members: Sequence[str], first: int) -> int:
        """Return the index of the next member, in turn from `first`, in the rack of a replica; -1 if there is none."""
        at = self._places.get(tp)
        if at:
            for step in range(len(members)):
                index = (first + step) % len(members)
                if self.member_racks.get(members[index]) in at:
                    return index
        return -1
