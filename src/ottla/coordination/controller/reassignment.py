"""Who copies a partition while it moves to other brokers, and when it has moved (KIP-455). Pure.

A move that is under way has the copies that come and those that go among the replicas, and says which is which. It is complete once
all that come are in sync and somebody stays who is.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from ottla.coordination.cluster.topic import PartitionState


class Copies(NamedTuple):
    """Who copies a partition: all, who is in sync, and whom a move takes away or brings."""

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    removing: tuple[int, ...] = ()
    adding: tuple[int, ...] = ()

    @property
    def moving(self) -> bool:
        return bool(self.removing or self.adding)


def copies_of(state: PartitionState) -> Copies:
    return Copies(state.replicas, state.isr, state.removing_replicas, state.adding_replicas)


def begun(state: PartitionState, wanted: Sequence[int]) -> Copies:
    """A move to other brokers: those who go stay behind those who are wanted."""
    removing = tuple(sorted(set(state.replicas) - set(wanted)))
    adding = tuple(sorted(set(wanted) - set(state.replicas)))
    return Copies((*wanted, *removing), state.isr, removing, adding)


def completed(copies: Copies) -> Copies:
    """Without those who go, if the move can end now; else as it is."""
    replicas, isr = without(copies.replicas, copies.removing), without(copies.isr, copies.removing)
    if not copies.moving or not replicas or (copies.removing and not isr) or not set(copies.adding) <= set(isr):
        return copies
    # Fewer copies than before: all that stay have to be in sync, or the move would leave fewer in sync than there are now.
    if len(copies.adding) < len(copies.removing) and not set(replicas) <= set(isr):
        return copies
    return Copies(replicas, isr)


def reverted(state: PartitionState) -> tuple[Copies, bool]:
    """As it was before the move, and whether records may be lost by that: nobody who stays is in sync, and one is said to be."""
    replicas = without(state.replicas, state.adding_replicas)
    isr = without(state.isr, state.adding_replicas)
    return Copies(replicas, isr or replicas[:1]), not isr


def without(replicas: Sequence[int], gone: Collection[int]) -> tuple[int, ...]:
    return tuple(replica for replica in replicas if replica not in gone)
