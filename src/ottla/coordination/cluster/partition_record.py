"""The conversion between the state of a partition and its records."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from msgspec.structs import replace

from ottla.coordination.cluster.records import NO_LEADER, PartitionChangeRecord, PartitionRecord
from ottla.coordination.cluster.topic import MIGRATING, PartitionState


def read_partition(record: PartitionRecord) -> PartitionState:
    """Return the state in a PartitionRecord."""
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


def apply_change(state: PartitionState, record: PartitionChangeRecord) -> PartitionState:
    """Return the state after a change.

    A leader in the record starts a new leader epoch, even if it is the same leader.
    """
    led = record.leader >= NO_LEADER
    replicas = value_or_present(record.replicas, state.replicas)
    return PartitionState(
        state.index,
        record.leader if led else state.leader,
        state.leader_epoch + led,
        replicas,
        value_or_present(record.isr, state.isr),
        value_or_present(record.eligible_leader_replicas, state.elr),
        state.partition_epoch + 1,
        tuple(record.directories or ()) or move_directories(state, replicas),
        value_or_present(record.removing_replicas, state.removing_replicas),
        value_or_present(record.adding_replicas, state.adding_replicas),
        value_or_present(record.last_known_elr, state.last_known_elr),
        state.leader_recovery_state if record.leader_recovery_state < 0 else record.leader_recovery_state,
    )


def clear_elr(state: PartitionState) -> PartitionState:
    """Return the state after a ClearElrRecord."""
    if not (state.elr or state.last_known_elr):
        return state
    return replace(state, elr=(), last_known_elr=(), partition_epoch=state.partition_epoch + 1)


def build_record(topic_id: UUID, state: PartitionState) -> PartitionRecord:
    """Return the PartitionRecord that recreates the state."""
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


def value_or_present(value: Sequence[int] | None, present: tuple[int, ...]) -> tuple[int, ...]:
    """Return the value of the record, or the present one if the record has none."""
    return present if value is None else tuple(value)


def move_directories(state: PartitionState, replicas: tuple[int, ...]) -> tuple[UUID, ...]:
    """Return the directories of the new replicas for a record version without directories."""
    if replicas is state.replicas:
        return state.directories
    directories = dict(zip(state.replicas, state.directories, strict=True))
    return tuple(directories.get(replica, MIGRATING) for replica in replicas)
