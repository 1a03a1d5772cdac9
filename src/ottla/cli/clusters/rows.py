"""What a cluster's brokers and partitions come to: who leads, who is behind, what has nobody."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ottla.model import Node, PartitionInfo, TopicPartition

BROKERS = ("BROKER", "ADDRESS", "RACK", "LEADS", "PREFERRED", "COPIES", "BEHIND")
PARTITIONS = ("PARTITION", "LEADER", "REPLICAS", "ISR", "STATE")
OFFLINE, BEHIND, ELSEWHERE = "no leader", "under-replicated", "not the preferred leader"


class Totals(NamedTuple):
    """How many partitions there are, and how many are in which trouble."""

    partitions: int
    offline: int
    under_replicated: int
    elsewhere: int
    """Led by another than the preferred leader."""

    def sentence(self, nodes_away: int = 0) -> str:
        """Return the counts in words; "all well" only if no node is away either."""
        if not (self.offline or self.under_replicated or self.elsewhere):
            return f"{counted(self.partitions, 'partition')}, {'in order, but a node is away' if nodes_away else 'all well'}"
        return (
            f"{counted(self.partitions, 'partition')}: {self.offline} without a leader, {self.under_replicated} "
            f"under-replicated, {self.elsewhere} not led by the preferred leader"
        )


def state_of(partition: PartitionInfo) -> str | None:
    """What is wrong with a partition, the worst of it; None where nothing is."""
    if partition.leader < 0:
        return OFFLINE
    if set(partition.in_sync_replicas) < set(partition.replicas):
        return BEHIND
    return None if partition.leader == partition.replicas[0] else ELSEWHERE


def totals_of(partitions: Sequence[PartitionInfo]) -> Totals:
    states = Counter(map(state_of, partitions))
    return Totals(len(partitions), states[OFFLINE], states[BEHIND], states[ELSEWHERE])


def broker_rows(
    nodes: Iterable[Node], partitions: Sequence[PartitionInfo], fenced: Iterable[Node] = ()
) -> list[tuple[object, ...]]:
    """A row for each broker, also for those that are registered or have copies and do not run."""
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
    """A row for each partition that is not well, the worst first."""
    order = (OFFLINE, BEHIND, ELSEWHERE)
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
