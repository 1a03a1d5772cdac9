"""The replicas of a partition during a reassignment, and its completion (KIP-455). Pure.

    replicas 1 2 3, target 3 4 5  ──start──►  replicas 3 4 5 1 2, adding 4 5, removing 1 2  ──4 5 in ISR──►  replicas 3 4 5

While a reassignment is in progress the replicas are the target followed by those to be removed. It completes when every
added replica is in the ISR and at least one remaining replica is. If the reassignment reduces the replication factor,
all remaining ones have to be.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from ottla.coordination.cluster.topic import PartitionState


class PartitionReplicas(NamedTuple):
    """The replicas of a partition, its ISR, and the replicas that a reassignment removes and adds."""

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    removing: tuple[int, ...] = ()
    adding: tuple[int, ...] = ()

    @property
    def is_reassigned(self) -> bool:
        return bool(self.removing or self.adding)


def read_replicas(state: PartitionState) -> PartitionReplicas:
    return PartitionReplicas(state.replicas, state.isr, state.removing_replicas, state.adding_replicas)


def start_reassignment(state: PartitionState, target: Sequence[int]) -> PartitionReplicas:
    """Return the replicas at the start of a reassignment: the target, followed by those that are to be removed."""
    removing = tuple(sorted(set(state.replicas) - set(target)))
    adding = tuple(sorted(set(target) - set(state.replicas)))
    return PartitionReplicas((*target, *removing), state.isr, removing, adding)


def complete_reassignment(present: PartitionReplicas) -> PartitionReplicas:
    """Return the target replicas if the reassignment can be completed now; else `present` unchanged."""
    replicas, isr = (
        exclude_replicas(present.replicas, present.removing),
        exclude_replicas(present.isr, present.removing),
    )
    if (
        not present.is_reassigned
        or not replicas
        or (present.removing and not isr)
        or not set(present.adding) <= set(isr)
    ):
        return present
    # The replication factor decreases: unless all remaining replicas are in the ISR, it would become smaller than it is now.
    if len(present.adding) < len(present.removing) and not set(replicas) <= set(isr):
        return present
    return PartitionReplicas(replicas, isr)


def revert_reassignment(state: PartitionState) -> tuple[PartitionReplicas, bool]:
    """Return the replicas after the reassignment is cancelled, and true if that may lose committed records.

    That is so if no original replica is in the ISR; the first one is then made the ISR.
    """
    replicas = exclude_replicas(state.replicas, state.adding_replicas)
    isr = exclude_replicas(state.isr, state.adding_replicas)
    return PartitionReplicas(replicas, isr or replicas[:1]), not isr


def exclude_replicas(replicas: Sequence[int], excluded: Collection[int]) -> tuple[int, ...]:
    return tuple(replica for replica in replicas if replica not in excluded)
