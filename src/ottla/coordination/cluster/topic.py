"""A topic as the cluster knows it: values only, replaced when something changes."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from msgspec import Struct, field

from ottla.coordination.cluster.topic_names import INTERNAL

MIGRATING = UUID(int=0)
"""Kafka's mark of a directory that nobody has told of yet: the record is older than directories."""
ANY_DIRECTORY = UUID(int=1)
"""Kafka's mark of "some directory, not told which"."""
LOST = UUID(int=2)
"""Kafka's mark of a directory that is gone."""


class PartitionState(Struct, frozen=True):
    """Who leads and who copies a partition."""

    index: int
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    elr: tuple[int, ...] = ()
    """Copies that fell out of sync as the last ones, and may lead (KIP-966); Kafka writes of such."""
    partition_epoch: int = 0
    """Grows with every change of the partition."""
    directories: tuple[UUID, ...] = ()
    """Where each replica lies on its broker, in the order of the replicas."""
    removing_replicas: tuple[int, ...] = ()
    adding_replicas: tuple[int, ...] = ()
    last_known_elr: tuple[int, ...] = ()
    leader_recovery_state: int = 0
    """1 while the leader recovers from an election that may have lost records."""

    def heir_of(self, leader: int) -> int | None:
        """Who is to lead where this one, which leads and alone is in sync, has lost what it had: the first who had everything when it was killed."""
        if (self.leader, self.isr) != (leader, (leader,)):
            return None
        return next((each for each in self.last_known_elr if each != leader and each in self.replicas), None)


class Topic(Struct, frozen=True):
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
