"""The controllers' decision about a partition: its replicas, leader, in-sync set and their epochs."""

from __future__ import annotations

from msgspec import Struct, field


class ReplicaAssignment(Struct, frozen=True):
    """A partition as the metadata have it."""

    leader: int
    leader_epoch: int
    """One more with each leader, and where a copy is taken away."""
    partition_epoch: int
    """One more with each change of any kind."""
    replicas: tuple[int, ...]
    in_sync: frozenset[int]
    min_in_sync: int = 1
    """`min.insync.replicas`."""

    @property
    def quorum(self) -> int:
        """How many must be in sync for anything to be committed: never more than there are copies."""
        return min(self.min_in_sync, len(self.replicas))


class LiveBrokers(Struct, frozen=True):
    """The brokers that are neither fenced nor shutting down, with their epochs."""

    epochs: dict[int, int] = field(default_factory=dict)

    def can_join(self, broker: int, epoch: int) -> bool:
        """Return True if this is the broker's present registration, not one from before a restart (KIP-903)."""
        return self.epochs.get(broker) == epoch
