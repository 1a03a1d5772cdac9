"""The broker that each partition is fetched from: its leader, or a nearer follower that the leader named (KIP-392).

Pure. A named follower is used for `metadata.max.age.ms`. Then the leader is asked again, because a nearer replica may
have been added or removed.
"""

from __future__ import annotations

from collections.abc import Iterable

from ottla.client.metadata.metadata_snapshot import MetadataSnapshot
from ottla.model import Node, TopicPartition


class ReadReplicas:
    """The preferred read replicas that leaders named."""

    def __init__(self, max_age_ms: float) -> None:
        self._max_age = max_age_ms / 1000
        self._preferred: dict[TopicPartition, tuple[int, float]] = {}

    def set_preferred(self, tp: TopicPartition, node_id: int, now: float) -> None:
        """Record that the leader named this replica."""
        self._preferred[tp] = (node_id, now + self._max_age)

    def preferred(self, tp: TopicPartition) -> int:
        """Return the replica that the leader named last, also after its time has expired; -1 for none."""
        preferred = self._preferred.get(tp)
        return -1 if preferred is None else preferred[0]

    def node(self, tp: TopicPartition, cluster: MetadataSnapshot, now: float) -> Node | None:
        """Return the broker to fetch from; None if the leader is unknown."""
        preferred = self._preferred.get(tp)
        if preferred is not None:
            replica = cluster.nodes.get(preferred[0])
            if replica is not None and now < preferred[1]:
                return replica
            del self._preferred[tp]
        return cluster.leader(tp)

    def clear_preferred(self, tps: Iterable[TopicPartition]) -> list[TopicPartition]:
        """Fetch these partitions from their leaders again. Return those that had a preferred replica."""
        return [tp for tp in tps if self._preferred.pop(tp, None) is not None]
