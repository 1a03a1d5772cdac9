"""What the controller says of a partition: who has a copy, who leads, who is in sync, and how often that has changed."""

from __future__ import annotations

from msgspec import Struct, field


class Assignment(Struct, frozen=True):
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
    """Who is there, by the metadata: the epochs of brokers that are neither fenced nor shutting down."""

    epochs: dict[int, int] = field(default_factory=dict)

    def may_join(self, broker: int, epoch: int) -> bool:
        """Whether it is the broker that registered last, rather than one that was started again since (KIP-903)."""
        return self.epochs.get(broker) == epoch
