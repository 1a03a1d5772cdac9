"""Which broker to read each partition from: its leader, or the replica nearer to us that the leader named (KIP-392).

Pure. A leader is asked again after `metadata.max.age.ms`, as a nearer replica may have appeared, or gone.
"""

from __future__ import annotations

from collections.abc import Iterable

from ottla.client.metadata.cluster import Cluster
from ottla.model import Node, TopicPartition


class ReadReplicas:
    """The replicas that leaders named."""

    def __init__(self, max_age_ms: float) -> None:
        self._max_age = max_age_ms / 1000
        self._named: dict[TopicPartition, tuple[int, float]] = {}

    def prefer(self, tp: TopicPartition, node_id: int, now: float) -> None:
        """The leader says: read from that replica."""
        self._named[tp] = (node_id, now + self._max_age)

    def named(self, tp: TopicPartition) -> int:
        """The replica that the leader named last, which may be old by now; -1 for none."""
        named = self._named.get(tp)
        return -1 if named is None else named[0]

    def node(self, tp: TopicPartition, cluster: Cluster, now: float) -> Node | None:
        """The broker to read from; None when nobody leads, or nobody we know."""
        named = self._named.get(tp)
        if named is not None:
            replica = cluster.nodes.get(named[0])
            if replica is not None and now < named[1]:
                return replica
            del self._named[tp]
        return cluster.leader(tp)

    def clear_preferred(self, tps: Iterable[TopicPartition]) -> list[TopicPartition]:
        """Ask the leaders again; returns those that were read from another replica."""
        return [tp for tp in tps if self._named.pop(tp, None) is not None]
