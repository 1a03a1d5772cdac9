"""The share coordinator: the state machine of one partition of `__share_group_state` (KIP-932).

    Initialize ──► snapshot, epoch 0 ──► update ──► … ──► update ──► snapshot, epoch 1 ──► update ──► …
                                                                          │
    Delete ──► tombstone of the snapshot                    the records before it are not needed any more

For each group, topic and partition it has the start offset and the states of the records after it. It does not interpret them: the leader of
the partition decides, and the latest write counts. It only rejects a leader that was replaced (the leader epoch) and a
state that was reset meanwhile (the state epoch, which increases when an administrator alters the offsets of the group).

A write is stored as an *update* that has only the changed batches. After a number of updates the whole state is written as a *snapshot* with
the next snapshot epoch. The log is deleted up to the oldest snapshot that is still the newest of its key. A key that is not
written any more would hold all others back, so `ColdSnapshotsDue` writes snapshots of those.

A new leader reads the state before it delivers records. That read is recorded if the leader epoch is higher, so the previous leader is
rejected from then on, even after the share coordinator itself has moved.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple
from uuid import UUID

from msgspec import Struct
from msgspec.structs import replace

from ottla.coordination.machine import Decision, Reply
from ottla.coordination.share.records import (
    ShareSnapshotKey,
    ShareSnapshotValue,
    ShareStateRecord,
    ShareUpdateKey,
    ShareUpdateValue,
)
from ottla.coordination.share.state_batches import PersisterStateBatch, combine_state_batches
from ottla.errors import ErrorCode
from ottla.protocol.messages import read_share_group_state as wire

UNKNOWN = -1
"""No start offset, no count, no epoch."""
UPDATES_PER_SNAPSHOT = 500
"""`share.coordinator.snapshot.update.records.per.snapshot`"""


class SharePartitionKey(NamedTuple):
    """A partition as one group reads it."""

    group_id: str
    topic_id: UUID
    partition: int


class InitializeRequested(Struct, frozen=True):
    """InitializeShareGroupState for one partition. The reply is an error code."""

    ticket: int
    key: SharePartitionKey
    state_epoch: int
    start_offset: int
    wall_ms: int
    is_known: bool = True
    """True if the metadata of the cluster has the partition."""


class WriteRequested(Struct, frozen=True):
    """WriteShareGroupState for one partition. The reply is an error code."""

    ticket: int
    key: SharePartitionKey
    state_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int
    batches: Sequence[PersisterStateBatch]
    wall_ms: int
    is_known: bool = True


class ReadRequested(Struct, frozen=True):
    """ReadShareGroupState for one partition. The reply is an error code, or the KeyState."""

    ticket: int
    key: SharePartitionKey
    leader_epoch: int
    wall_ms: int
    is_known: bool = True


class SummaryRequested(Struct, frozen=True):
    """ReadShareGroupStateSummary for one partition. The reply is an error code, the KeyState, or None if there is no state."""

    ticket: int
    key: SharePartitionKey
    is_known: bool = True


class DeleteRequested(Struct, frozen=True):
    """DeleteShareGroupState for one partition. The reply is an error code."""

    ticket: int
    key: SharePartitionKey
    is_known: bool = True


class TopicStatesDeleted(Struct, frozen=True):
    """Topics were deleted, so their states are deleted. The reply is the number of deleted states."""

    ticket: int
    topic_ids: Collection[UUID]


class ColdSnapshotsDue(Struct, frozen=True):
    """Write snapshots of states that were last written before `before_ms`. The reply is their number."""

    ticket: int
    before_ms: int
    wall_ms: int


Event = (
    InitializeRequested
    | WriteRequested
    | ReadRequested
    | SummaryRequested
    | DeleteRequested
    | TopicStatesDeleted
    | ColdSnapshotsDue
)


class KeyState(Struct, frozen=True):
    """The state of one partition for one group."""

    snapshot_epoch: int
    state_epoch: int
    leader_epoch: int
    start_offset: int
    """UNKNOWN until a leader has found where the group starts to read."""
    delivery_complete_count: int
    batches: tuple[PersisterStateBatch, ...]
    created_ms: int
    written_ms: int
    update_count: int = 0
    """The number of updates since the snapshot."""


class ShareState:
    """The states of one partition of `__share_group_state`."""

    def __init__(self, updates_per_snapshot: int = UPDATES_PER_SNAPSHOT) -> None:
        self._updates_per_snapshot = updates_per_snapshot
        self._states: dict[SharePartitionKey, KeyState] = {}
        self._snapshot_offsets: dict[SharePartitionKey, int] = {}

    @property
    def states(self) -> Mapping[SharePartitionKey, KeyState]:
        return self._states

    def decide(self, event: Event, now: float) -> Decision[ShareStateRecord]:
        return DECIDES[type(event)](self, event)

    def replay(self, record: ShareStateRecord) -> None:
        """Apply a record; an update of a key without a snapshot is ignored, because its deletion was compacted away."""
        key = key_of(record)
        if record.value is None:
            self._states.pop(key, None)
        elif isinstance(record.value, ShareSnapshotValue):
            self._states[key] = state_of(record.value)
        elif key in self._states:
            self._states[key] = updated_state(self._states[key], record.value)

    def note_offset(self, record: ShareStateRecord, offset: int) -> None:
        """Remember where a record is in the log, for `lowest_needed_offset`. The caller may omit this."""
        if record.value is None:
            self._snapshot_offsets.pop(key_of(record), None)
        elif isinstance(record.key, ShareSnapshotKey):
            self._snapshot_offsets[key_of(record)] = offset

    @property
    def lowest_needed_offset(self) -> int | None:
        """The offset before which the log can be deleted; None if that is not known."""
        return min(self._snapshot_offsets.values(), default=None)

    def check(self) -> None:
        for state in self._states.values():
            assert state.update_count <= self._updates_per_snapshot
            assert combine_state_batches((), state.batches, state.start_offset) == state.batches
            assert state.start_offset >= 0 or not state.batches

    def _initialize(self, event: InitializeRequested) -> Decision[ShareStateRecord]:
        state = self._states.get(event.key)
        if event.key.partition < 0 or event.state_epoch < 0 or event.start_offset < UNKNOWN:
            return reply_only(event.ticket, ErrorCode.INVALID_REQUEST)
        if state is not None and state.state_epoch > event.state_epoch:
            return reply_only(event.ticket, ErrorCode.FENCED_STATE_EPOCH)
        if not event.is_known:
            return reply_only(event.ticket, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        # The group coordinator sends the request again if it lost the response; the state may have advanced since.
        is_repeated = state is not None and state.state_epoch == event.state_epoch
        if state is not None and is_repeated and event.start_offset in (UNKNOWN, state.start_offset):
            return reply_only(event.ticket, ErrorCode.NONE)
        fresh = KeyState(
            0 if state is None else state.snapshot_epoch + 1,
            event.state_epoch,
            0 if state is None else state.leader_epoch,
            event.start_offset,
            UNKNOWN if event.start_offset == UNKNOWN else 0,
            (),
            event.wall_ms,
            event.wall_ms,
        )
        return Decision((snapshot_record(event.key, fresh),), (Reply(event.ticket, ErrorCode.NONE),))

    def _write(self, event: WriteRequested) -> Decision[ShareStateRecord]:
        state = self._states.get(event.key)
        if event.key.partition < 0 or state is None:
            return reply_only(event.ticket, ErrorCode.INVALID_REQUEST)
        error = epoch_error(state, event.leader_epoch, event.state_epoch)
        if not error and not event.is_known:
            error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if error:
            return reply_only(event.ticket, error)
        record = self._next_record(
            event.key,
            state,
            ShareUpdateValue(
                state.snapshot_epoch,
                event.leader_epoch,
                event.start_offset,
                event.delivery_complete_count,
                to_wire_batches(combine_state_batches((), event.batches, event.start_offset)),
            ),
            event.wall_ms,
        )
        return Decision((record,), (Reply(event.ticket, ErrorCode.NONE),))

    def _read(self, event: ReadRequested) -> Decision[ShareStateRecord]:
        state = self._states.get(event.key)
        if event.key.partition < 0 or state is None:
            return reply_only(event.ticket, ErrorCode.INVALID_REQUEST)
        error = epoch_error(state, event.leader_epoch, UNKNOWN)
        if not error and not event.is_known:
            error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if error:
            return reply_only(event.ticket, error)
        if event.leader_epoch <= state.leader_epoch:
            return reply_only(event.ticket, state)
        change = ShareUpdateValue(state.snapshot_epoch, event.leader_epoch, UNKNOWN, UNKNOWN, [])
        record = self._next_record(event.key, state, change, event.wall_ms)
        return Decision((record,), (Reply(event.ticket, replace(state, leader_epoch=event.leader_epoch)),))

    def _summarize(self, event: SummaryRequested) -> Decision[ShareStateRecord]:
        if event.key.partition < 0:
            return reply_only(event.ticket, ErrorCode.INVALID_REQUEST)
        if not event.is_known:
            return reply_only(event.ticket, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return reply_only(event.ticket, self._states.get(event.key))

    def _delete(self, event: DeleteRequested) -> Decision[ShareStateRecord]:
        if event.key.partition < 0:
            return reply_only(event.ticket, ErrorCode.INVALID_REQUEST)
        if not event.is_known:
            return reply_only(event.ticket, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        replies = (Reply(event.ticket, ErrorCode.NONE),)
        return Decision(tombstones([event.key]) if event.key in self._states else (), replies)

    def _delete_topics(self, event: TopicStatesDeleted) -> Decision[ShareStateRecord]:
        gone = [key for key in self._states if key.topic_id in event.topic_ids]
        return Decision(tombstones(gone), (Reply(event.ticket, len(gone)),))

    def _write_cold_snapshots(self, event: ColdSnapshotsDue) -> Decision[ShareStateRecord]:
        cold = [(key, state) for key, state in self._states.items() if state.written_ms < event.before_ms]
        records = tuple(snapshot_record(key, next_snapshot(state, event.wall_ms)) for key, state in cold)
        return Decision(records, (Reply(event.ticket, len(records)),))

    def _next_record(
        self, key: SharePartitionKey, state: KeyState, change: ShareUpdateValue, wall_ms: int
    ) -> ShareStateRecord:
        """Return the update, or the next snapshot if there are enough updates since the last one."""
        if state.update_count < self._updates_per_snapshot:
            return ShareStateRecord(ShareUpdateKey(*key), change)
        return snapshot_record(key, next_snapshot(updated_state(state, change), wall_ms))


DECIDES: Mapping[type, Callable[[ShareState, Any], Decision[ShareStateRecord]]] = {
    InitializeRequested: ShareState._initialize,
    WriteRequested: ShareState._write,
    ReadRequested: ShareState._read,
    SummaryRequested: ShareState._summarize,
    DeleteRequested: ShareState._delete,
    TopicStatesDeleted: ShareState._delete_topics,
    ColdSnapshotsDue: ShareState._write_cold_snapshots,
}
"""The handler of each event."""


def epoch_error(state: KeyState, leader_epoch: int, state_epoch: int) -> ErrorCode:
    """Return the error for a leader with these epochs; UNKNOWN is not compared."""
    if UNKNOWN != leader_epoch < state.leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if UNKNOWN != state_epoch < state.state_epoch:
        return ErrorCode.FENCED_STATE_EPOCH
    return ErrorCode.NONE


def updated_state(state: KeyState, change: ShareUpdateValue) -> KeyState:
    """Return the state after an update. The start offset never decreases: a delayed write must not bring finished records back."""
    start_offset = max(state.start_offset, change.start_offset)
    complete = change.delivery_complete_count
    return replace(
        state,
        leader_epoch=max(state.leader_epoch, change.leader_epoch),
        start_offset=start_offset,
        delivery_complete_count=state.delivery_complete_count if complete == UNKNOWN else complete,
        batches=combine_state_batches(state.batches, from_wire_batches(change.state_batches), start_offset),
        update_count=state.update_count + 1,
    )


def next_snapshot(state: KeyState, wall_ms: int) -> KeyState:
    return replace(state, snapshot_epoch=state.snapshot_epoch + 1, written_ms=wall_ms, update_count=0)


def state_of(value: ShareSnapshotValue) -> KeyState:
    return KeyState(
        value.snapshot_epoch,
        value.state_epoch,
        value.leader_epoch,
        value.start_offset,
        value.delivery_complete_count,
        combine_state_batches((), from_wire_batches(value.state_batches), value.start_offset),
        value.create_timestamp,
        value.write_timestamp,
    )


def snapshot_record(key: SharePartitionKey, state: KeyState) -> ShareStateRecord:
    value = ShareSnapshotValue(
        state.snapshot_epoch,
        state.state_epoch,
        state.leader_epoch,
        state.start_offset,
        state.delivery_complete_count,
        state.created_ms,
        state.written_ms,
        to_wire_batches(state.batches),
    )
    return ShareStateRecord(ShareSnapshotKey(*key), value)


def tombstones(keys: Iterable[SharePartitionKey]) -> tuple[ShareStateRecord, ...]:
    """Return the records that delete states."""
    return tuple(ShareStateRecord(ShareSnapshotKey(*key), None) for key in keys)


def key_of(record: ShareStateRecord) -> SharePartitionKey:
    return SharePartitionKey(record.key.group_id, record.key.topic_id, record.key.partition)


def to_wire_batches(batches: Iterable[PersisterStateBatch]) -> list[wire.StateBatch]:
    return [wire.StateBatch(*batch) for batch in batches]


def from_wire_batches(batches: Iterable[wire.StateBatch]) -> list[PersisterStateBatch]:
    return [
        PersisterStateBatch(each.first_offset, each.last_offset, each.delivery_state, each.delivery_count)
        for each in batches
    ]


def reply_only(ticket: int, message: Any) -> Decision[ShareStateRecord]:
    return Decision(replies=(Reply(ticket, message),))
