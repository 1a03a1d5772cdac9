"""A partition and the records of it, each made of the other."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from msgspec.structs import replace

from ottla.coordination.cluster.records import NO_LEADER, PartitionChangeRecord, PartitionRecord
from ottla.coordination.cluster.topic import MIGRATING, PartitionState


def state_of(record: PartitionRecord) -> PartitionState:
    """A partition as a record says."""
    return PartitionState(
        record.partition_id,
        record.leader,
        record.leader_epoch,
        tuple(record.replicas),
        tuple(record.isr),
        tuple(record.eligible_leader_replicas or ()),
        record.partition_epoch,
        tuple(record.directories) or (MIGRATING,) * len(record.replicas),
        tuple(record.removing_replicas),
        tuple(record.adding_replicas),
        tuple(record.last_known_elr or ()),
        record.leader_recovery_state,
    )


def changed(state: PartitionState, record: PartitionChangeRecord) -> PartitionState:
    """A partition after a change; a leader that is named begins a new epoch, even if it is the one before."""
    led = record.leader >= NO_LEADER
    replicas = told(record.replicas, state.replicas)
    return PartitionState(
        state.index,
        record.leader if led else state.leader,
        state.leader_epoch + led,
        replicas,
        told(record.isr, state.isr),
        told(record.eligible_leader_replicas, state.elr),
        state.partition_epoch + 1,
        tuple(record.directories or ()) or moved(state, replicas),
        told(record.removing_replicas, state.removing_replicas),
        told(record.adding_replicas, state.adding_replicas),
        told(record.last_known_elr, state.last_known_elr),
        state.leader_recovery_state if record.leader_recovery_state < 0 else record.leader_recovery_state,
    )


def without_elr(state: PartitionState) -> PartitionState:
    """A partition after all that was eligible to lead it without being in sync was struck out."""
    if not (state.elr or state.last_known_elr):
        return state
    return replace(state, elr=(), last_known_elr=(), partition_epoch=state.partition_epoch + 1)


def record_of(topic_id: UUID, state: PartitionState) -> PartitionRecord:
    """What makes the partition as it is."""
    return PartitionRecord(
        state.index,
        topic_id,
        state.replicas,
        state.isr,
        state.removing_replicas,
        state.adding_replicas,
        state.leader,
        state.leader_recovery_state,
        state.leader_epoch,
        state.partition_epoch,
        state.directories,
        state.elr or None,
        state.last_known_elr or None,
    )


def told(value: Sequence[int] | None, present: tuple[int, ...]) -> tuple[int, ...]:
    return present if value is None else tuple(value)


def moved(state: PartitionState, replicas: tuple[int, ...]) -> tuple[UUID, ...]:
    """Where replicas lie, when a record older than directories changes who they are."""
    if replicas is state.replicas:
        return state.directories
    directories = dict(zip(state.replicas, state.directories, strict=True))
    return tuple(directories.get(replica, MIGRATING) for replica in replicas)
