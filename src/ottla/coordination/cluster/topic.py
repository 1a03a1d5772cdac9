"""A topic and its partitions as immutable values."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from msgspec import Struct, field

from ottla.coordination.cluster.topic_names import INTERNAL

MIGRATING = UUID(int=0)
"""Kafka's id for an unknown directory: the record was written by a version without directories."""
ANY_DIRECTORY = UUID(int=1)
"""Kafka's id for a directory that the broker has not chosen or reported yet."""
LOST = UUID(int=2)
"""Kafka's id for a directory that is lost."""


class PartitionState(Struct, frozen=True):
    """The leader, replicas, ISR and epochs of a partition."""

    index: int
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    elr: tuple[int, ...] = ()
    """Replicas outside the ISR that have every committed record, and may be elected (KIP-966)."""
    partition_epoch: int = 0
    """Increases with every change of the partition."""
    directories: tuple[UUID, ...] = ()
    """The directory of each replica, in the order of the replicas."""
    removing_replicas: tuple[int, ...] = ()
    adding_replicas: tuple[int, ...] = ()
    last_known_elr: tuple[int, ...] = ()
    leader_recovery_state: int = 0
    """1 while the leader recovers from an election that may have lost records."""

    def find_complete_replica(self, leader: int) -> int | None:
        """Return the replica to elect if `leader`, the only member of the ISR, has lost its log; None if none.

        It is the first replica that was complete when its process was killed (decision 0106).
        """
        if (self.leader, self.isr) != (leader, (leader,)):
            return None
        return next((each for each in self.last_known_elr if each != leader and each in self.replicas), None)


class ClusterTopic(Struct, frozen=True):
    """A topic with its partitions in order of their index."""

    name: str
    topic_id: UUID
    partitions: tuple[PartitionState, ...] = ()
    configs: Mapping[str, str] = field(default_factory=dict)
    """The configs that are set; all others have the broker's defaults."""

    @property
    def is_internal(self) -> bool:
        """True if the broker keeps its own state in the topic."""
        return self.name in INTERNAL
