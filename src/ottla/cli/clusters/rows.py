"""Table rows for the brokers and partitions of a cluster."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ottla.model import Node, PartitionInfo, TopicPartition

BROKERS = ("BROKER", "ADDRESS", "RACK", "LEADS", "PREFERRED", "COPIES", "BEHIND")
PARTITIONS = ("PARTITION", "LEADER", "REPLICAS", "ISR", "STATE")
OFFLINE, BEHIND, NOT_PREFERRED = "no leader", "under-replicated", "not the preferred leader"


class ClusterTotals(NamedTuple):
    """The number of partitions, in total and by trouble."""

    partitions: int
    offline: int
    under_replicated: int
    not_preferred: int
    """The number of partitions that are not led by their preferred leader."""

    def sentence(self, nodes_away: int = 0) -> str:
        """Return the counts in words; "all well" only if no node is away either."""
        if not (self.offline or self.under_replicated or self.not_preferred):
            return f"{counted(self.partitions, 'partition')}, {'in order, but a node is away' if nodes_away else 'all well'}"
        return (
            f"{counted(self.partitions, 'partition')}: {self.offline} without a leader, {self.under_replicated} "
            f"under-replicated, {self.not_preferred} not led by the preferred leader"
        )


def state_of(partition: PartitionInfo) -> str | None:
    """Return the most serious problem of a partition, or None."""
    if partition.leader < 0:
        return OFFLINE
    if set(partition.in_sync_replicas) < set(partition.replicas):
        return BEHIND
    return None if partition.leader == partition.replicas[0] else NOT_PREFERRED


def totals_of(partitions: Sequence[PartitionInfo]) -> ClusterTotals:
    states = Counter(map(state_of, partitions))
    return ClusterTotals(len(partitions), states[OFFLINE], states[BEHIND], states[NOT_PREFERRED])


def broker_rows(
    nodes: Iterable[Node], partitions: Sequence[PartitionInfo], fenced: Iterable[Node] = ()
) -> list[tuple[object, ...]]:
    """Return one row per broker, including offline brokers that are registered or have replicas."""
    leads = Counter(p.leader for p in partitions)
    preferred = Counter(p.replicas[0] for p in partitions if p.replicas)
    copies = Counter(broker for p in partitions for broker in p.replicas)
    behind = Counter(broker for p in partitions for broker in set(p.replicas) - set(p.in_sync_replicas))
    there = {node.node_id: (f"{node} (away)", node.rack) for node in fenced}
    there |= {node.node_id: (str(node), node.rack) for node in nodes}
    away = ("(away)", None)
    return [
        (number, *there.get(number, away), leads[number], preferred[number], copies[number], behind[number])
        for number in sorted({*there, *copies})
    ]


def partition_rows(partitions: Iterable[PartitionInfo]) -> list[tuple[object, ...]]:
    """Return one row per unhealthy partition, the most serious first."""
    order = (OFFLINE, BEHIND, NOT_PREFERRED)
    ill = [(state, p) for p in partitions if (state := state_of(p)) is not None]
    ill.sort(key=lambda pair: (order.index(pair[0]), pair[1].topic, pair[1].partition))
    return [
        (
            TopicPartition(p.topic, p.partition),
            p.leader if p.leader >= 0 else None,
            p.replicas,
            p.in_sync_replicas,
            state,
        )
        for state, p in ill
    ]


def counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'s' * (count != 1)}"
