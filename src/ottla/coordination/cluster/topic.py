"""A topic as the cluster knows it: values only, replaced when something changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from uuid import UUID

from ottla.coordination.cluster.topic_names import INTERNAL


@dataclass(frozen=True, slots=True)
class PartitionState:
    """Who leads and who copies a partition."""

    index: int
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    elr: tuple[int, ...] = ()
    """Copies that fell out of sync as the last ones, and may lead (KIP-966); Kafka writes of such."""


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic, its partitions in order of their index."""

    name: str
    topic_id: UUID
    partitions: tuple[PartitionState, ...] = ()
    configs: Mapping[str, str] = field(default_factory=dict)
    """What was set; everything else has the broker's default."""

    @property
    def internal(self) -> bool:
        """Whether the broker keeps its own state there."""
        return self.name in INTERNAL
