"""The records of one partition that a share group has in flight, at the leader of the partition (KIP-932).

                 start offset                                  end offset
    ──────────────────┼─────────────────────────────────────────────┼──────────────────►
     finished         │ acquired │ available │ finished │ acquired  │ not fetched yet

**The window** has all records from the start offset up to the end offset. It is a list of ranges: adjacent records of the same state, delivery
count, member and lock are one range, so 10,000 records that were fetched together are one object. The ranges cover the window without a gap.
Offsets in it that the log does not have become archived ranges. A range never crosses the border of a *batch*, the records that were first
acquired together, because the throttling of bad records counts in batches.

**Persistence.** A consumer's acknowledgement is confirmed only after the share coordinator stored it. Until then the range has its new state and
remembers the old one, and no other request may change it; if the write fails, the old state returns. A lock that expires and a copy to the
dead letter queue do not wait: their states hold even if the write fails, and the next leader repeats the work. One write is outstanding at a
time, and every change meanwhile is part of the next one. So writes cannot overtake each other, and many acknowledgements share a write.

**What a new leader knows** is the start offset and the persisted ranges. Records in between that were acquired and never released are available
with the last persisted count, records without any count were never released and start at 0. The start offset is written with
each write as it was at that time; the finished records after it are persisted as ranges, and a new leader skips them.

**The dead letter queue** (KIP-1191). A rejected record, or one without attempts left, becomes Archiving, which is persisted first. Then the
record is copied, and only then it becomes Archived. A crash in between repeats the copy. A copy that fails archives the record anyway.

Differences from Apache Kafka's SharePartition, none of which a client can see: Kafka has an object for each record of a batch once its records
differ; it keeps acquired records below a moved log start until their locks expire, here they are dropped at once, since their
acknowledgements are ignored anyway; its writes may be outstanding together.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from heapq import heappop, heappush
from itertools import groupby
from operator import attrgetter

from msgspec import Struct, field

from ottla.coordination.share.events import (
    AcquiredRange,
    AcquireMode,
    ClosedOffsetRange,
    Completion,
    DeadLetterCause,
    DeadLetters,
    Effects,
    FetchedRecords,
    PersistedState,
    ShareAcknowledgementBatch,
    ShareLimits,
    StateWrite,
)
from ottla.coordination.share.record_state import ACKNOWLEDGED_STATES, NEXT_STATES, AcknowledgeType, RecordState
from ottla.coordination.share.state_batches import PersisterStateBatch, append_state_batch, combine_state_batches
from ottla.errors import ErrorCode

NO_MEMBER = ""
NOTHING = Effects()

PERSIST_ERRORS = {
    ErrorCode.NOT_COORDINATOR: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_NOT_AVAILABLE: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.GROUP_ID_NOT_FOUND: ErrorCode.GROUP_ID_NOT_FOUND,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.FENCED_LEADER_EPOCH: ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.FENCED_STATE_EPOCH: ErrorCode.NOT_LEADER_OR_FOLLOWER,
}
"""Error of the share coordinator → error for the consumer; any other is UNKNOWN_SERVER_ERROR."""

FENCING_ERRORS = frozenset({ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.FENCED_STATE_EPOCH})


class InFlightRange(Struct):
    """Adjacent records of one state. `first_offset` and `last_offset` are both included."""

    first_offset: int
    last_offset: int
    state: RecordState
    delivery_count: int
    batch: ClosedOffsetRange
    """The records that were first acquired together with these."""
    member_id: str = NO_MEMBER
    """The member that acquired the records; empty in any other state."""
    deadline: float | None = None
    """When the lock of the member expires. It is kept while a new state is persisted, for the case that the write fails."""
    rollback_member_id: str = NO_MEMBER
    """The member that had acquired the records, while a new state is being persisted; empty if none is."""
    rollback_delivery_count: int = 0

    @property
    def is_changing(self) -> bool:
        """True while the state waits for its write. Only acquired records get there, so the state to return to is Acquired."""
        return self.rollback_member_id != NO_MEMBER

    @property
    def can_be_acquired(self) -> bool:
        return self.state == RecordState.AVAILABLE and self.rollback_member_id == NO_MEMBER

    @property
    def is_finished(self) -> bool:
        """True if the start offset may pass these records."""
        return self.state.is_final and self.rollback_member_id == NO_MEMBER

    @property
    def record_count(self) -> int:
        return self.last_offset - self.first_offset + 1

    @property
    def offsets(self) -> ClosedOffsetRange:
        return ClosedOffsetRange(self.first_offset, self.last_offset)

    @property
    def state_batch(self) -> PersisterStateBatch:
        return PersisterStateBatch(self.first_offset, self.last_offset, self.state, self.delivery_count)

    def may_join(self, other: InFlightRange) -> bool:
        """Return True if `other`, the next range, can become a part of this one."""
        return (
            self.state == other.state
            and self.delivery_count == other.delivery_count
            and self.member_id == other.member_id
            and self.deadline == other.deadline
            and self.rollback_member_id == other.rollback_member_id
            and self.rollback_delivery_count == other.rollback_delivery_count
            and self.batch == other.batch
        )

    def cut(self, offset: int) -> InFlightRange:
        """Keep the records before `offset` and return a range with the others."""
        other = InFlightRange(
            offset,
            self.last_offset,
            self.state,
            self.delivery_count,
            self.batch,
            self.member_id,
            self.deadline,
            self.rollback_member_id,
            self.rollback_delivery_count,
        )
        self.last_offset = offset - 1
        return other

    def change_state(self, state: RecordState) -> None:
        assert state in NEXT_STATES[self.state], f"{self.state.name} cannot become {state.name}"
        self.state = state


first_offset_of = attrgetter("first_offset")


class StateChanges(Struct):
    """Changed states that go into one write."""

    batches: list[PersisterStateBatch] = field(default_factory=list)
    tickets: list[int] = field(default_factory=list)
    revocable: list[ClosedOffsetRange] = field(default_factory=list)
    """The offsets of which a failed write restores the old state."""
    dead_letters: list[tuple[ClosedOffsetRange, DeadLetterCause]] = field(default_factory=list)
    """The records to copy to the dead letter queue after the write."""

    def add(self, changed: InFlightRange) -> None:
        append_state_batch(self.batches, changed.state_batch)

    def extend(self, other: StateChanges) -> None:
        self.batches += other.batches
        self.tickets += other.tickets
        self.revocable += other.revocable
        self.dead_letters += other.dead_letters


class SharePartition:
    """The in-flight records of one partition for one share group."""

    def __init__(self, persisted: PersistedState, leader_epoch: int, limits: ShareLimits | None = None) -> None:
        """Continue from the state that the share coordinator has.

        `persisted.start_offset` must be known: for a new group the caller finds it by `share.auto.offset.reset`. Afterwards
        the caller passes the start of the log to `move_log_start`, and copies the records of `resume_dead_letters`.
        """
        assert persisted.start_offset >= 0
        self.limits = limits or ShareLimits()
        """Replaced when the configuration of the group changes."""
        self._leader_epoch = leader_epoch
        self._state_epoch = persisted.state_epoch
        self._start_offset = self._end_offset = persisted.start_offset
        self._ranges: list[InFlightRange] = []
        self._deadlines: list[float] = []
        self._waiting = StateChanges()
        self._written: StateChanges | None = None
        self._is_fenced = False
        self._restore(persisted.batches)

    @property
    def start_offset(self) -> int:
        return self._start_offset

    @property
    def end_offset(self) -> int:
        """The offset after the last record that was ever acquired."""
        return self._end_offset

    @property
    def is_fenced(self) -> bool:
        """True if the share coordinator knows a later leader or a later state. The caller discards this object."""
        return self._is_fenced

    @property
    def in_flight_count(self) -> int:
        return self._end_offset - self._start_offset

    @property
    def next_deadline(self) -> float | None:
        """When to call `expire_locks`. It may be early: a lock that was released leaves its time behind."""
        return self._deadlines[0] if self._deadlines else None

    @property
    def acquired_count(self) -> int:
        """The number of records that members have acquired and not acknowledged."""
        return sum(each.record_count for each in self._ranges if each.state == RecordState.ACQUIRED)

    @property
    def unfinished_counts(self) -> dict[int, int]:
        """Delivery count → the number of records with it that were delivered and are not finished."""
        counts: dict[int, int] = {}
        for each in self._ranges:
            if each.delivery_count and not each.is_finished:
                counts[each.delivery_count] = counts.get(each.delivery_count, 0) + each.record_count
        return counts

    @property
    def delivery_complete_count(self) -> int:
        """The number of records in the window that are acknowledged or archived, persisted or not."""
        finished = (RecordState.ACKNOWLEDGED, RecordState.ARCHIVED)
        return sum(each.record_count for each in self._ranges if each.state in finished)

    @property
    def next_fetch_offset(self) -> int:
        """The offset to read the log from: the first available record, or the end of the window."""
        available = next((each for each in self._ranges if each.can_be_acquired), None)
        return self._end_offset if available is None else available.first_offset

    @property
    def can_acquire(self) -> bool:
        """True if a fetch can acquire records: some are available again, or the window may grow."""
        if self._is_fenced:
            return False
        return self.in_flight_count < self.limits.max_in_flight_records or self.next_fetch_offset < self._end_offset

    @property
    def ranges(self) -> Iterator[tuple[PersisterStateBatch, str]]:
        """The ranges of the window with the member that acquired each, for descriptions and tests."""
        return iter([(each.state_batch, each.member_id) for each in self._ranges])

    def acquire(
        self,
        member_id: str,
        fetched: FetchedRecords,
        max_records: int,
        now: float,
        mode: AcquireMode = AcquireMode.BATCH_OPTIMIZED,
        batch_size: int = 500,
    ) -> tuple[AcquiredRange, ...]:
        """Give the member the available records among those that were read, and lock them.

        Records of aborted transactions are archived instead. New records are returned in ranges of about `batch_size` (`batch.size`
        of the request), split where a record batch starts.
        """
        assert member_id != NO_MEMBER
        if self._is_fenced or not fetched.batches:
            return ()
        last_offset = fetched.batches[-1].last_offset
        capacity = min(max_records, self.limits.max_in_flight_records - self.in_flight_count)
        if capacity <= 0:
            # The window is full. Records in it that were released can still be acquired.
            capacity = min(max_records, self._end_offset - fetched.fetch_offset)
            last_offset = min(last_offset, self._end_offset - 1)
            if capacity <= 0:
                return ()
        first_offset = max(fetched.batches[0].first_offset, self._start_offset)
        self._archive_missing(fetched.fetch_offset, first_offset)
        acquired, count, is_throttled = self._acquire_again(member_id, first_offset, last_offset, capacity, mode, now)
        if count < capacity and not is_throttled and last_offset >= self._end_offset:
            acquired += self._acquire_new(member_id, fetched, last_offset, capacity - count, mode, batch_size, now)
        acquired = self._archive_aborted(acquired, fetched.aborted)
        self._merge(min(first_offset, fetched.fetch_offset), last_offset)
        self._advance_start()
        return tuple(acquired)

    def acknowledge(
        self, ticket: int, member_id: str, batches: Sequence[ShareAcknowledgementBatch], now: float
    ) -> Effects:
        """Change the states of acquired records as the member requests.

        All batches succeed or none: NOT_LEADER_OR_FOLLOWER if this leader is fenced; INVALID_REQUEST for a malformed batch or one beyond the
        window; INVALID_RECORD_STATE if a record is not acquired by this member, or another acknowledgement of it is being persisted.
        Records before the start offset are ignored. The result is in the completions, of this step or of a later one.
        """
        if self._is_fenced:
            return Effects(completions=(Completion(ticket, ErrorCode.NOT_LEADER_OR_FOLLOWER),))
        changes = StateChanges()
        error = find_acknowledgement_error(batches)
        for batch in () if error else batches:
            error = self._acknowledge_batch(member_id, batch, changes, now)
            if error:
                break
        if error:
            self._roll_back(changes)
        for batch in batches:
            self._merge(batch.first_offset, batch.last_offset)
        if error or not changes.batches:
            return Effects(completions=(Completion(ticket, error),))
        changes.tickets.append(ticket)
        return self._persist(changes)

    def release_member(self, ticket: int, member_id: str) -> Effects:
        """Release everything that a member has acquired, because its share session was closed.

        The records may never have reached it, so this delivery does not count.
        """
        if self._is_fenced:
            return Effects(completions=(Completion(ticket, ErrorCode.NOT_LEADER_OR_FOLLOWER),))
        changes = StateChanges()
        for each in self._ranges:
            if each.state == RecordState.ACQUIRED and each.member_id == member_id:
                self._start_change(each, RecordState.AVAILABLE, each.delivery_count - 1, changes)
        if not changes.batches:
            return Effects(completions=(Completion(ticket, ErrorCode.NONE),))
        changes.tickets.append(ticket)
        return self._persist(changes)

    def expire_locks(self, now: float) -> Effects:
        """Release the records with expired locks."""
        if not self._deadlines or self._deadlines[0] > now or self._is_fenced:
            return NOTHING
        while self._deadlines and self._deadlines[0] <= now:
            heappop(self._deadlines)
        changes, expired_count = StateChanges(), 0
        for each in self._ranges:
            if each.state == RecordState.ACQUIRED and each.deadline is not None and each.deadline <= now:
                expired_count += each.record_count
                state = self._next_state(each, AcknowledgeType.RELEASE)
                each.change_state(state)
                each.member_id, each.deadline = NO_MEMBER, None
                changes.add(each)
                if state == RecordState.ARCHIVING:
                    changes.dead_letters.append((each.offsets, DeadLetterCause.DELIVERY_COUNT_EXCEEDED))
        self._merge_all()
        write = self._persist(changes).write if changes.batches else None
        self._advance_start()
        return Effects(write=write, expired_count=expired_count)

    def complete_write(self, error: ErrorCode, now: float) -> Effects:
        """Handle the result of the outstanding StateWrite; an error restores the records of acknowledgements and releases."""
        written = self._written
        assert written is not None, "no write is outstanding"
        self._written = None
        code = PERSIST_ERRORS.get(error, ErrorCode.UNKNOWN_SERVER_ERROR) if error else ErrorCode.NONE
        completions = tuple(Completion(ticket, code) for ticket in written.tickets)
        if error:
            self._roll_back(written)
        else:
            self._confirm(written)
        if error in FENCING_ERRORS:
            return Effects(completions=completions + self.fence().completions)
        letters = tuple(self._list_dead_letters(written.dead_letters))
        for first_offset, last_offset in written.revocable:
            self._merge(first_offset, last_offset)
        self._advance_start()
        expired = self.expire_locks(now)
        return Effects(expired.write or self._send(), completions, letters, expired.expired_count)

    def fence(self) -> Effects:
        """Stop, because another broker leads the partition or the group's offsets were reset; requests get NOT_LEADER_OR_FOLLOWER."""
        self._is_fenced = True
        tickets = [*(self._written.tickets if self._written else ()), *self._waiting.tickets]
        self._waiting, self._written = StateChanges(), None
        return Effects(completions=tuple(Completion(ticket, ErrorCode.NOT_LEADER_OR_FOLLOWER) for ticket in tickets))

    def resume_dead_letters(self) -> tuple[DeadLetters, ...]:
        """Return the records that the previous leader gave up and may not have copied. Call this once, after a restart.

        The cause is not persisted and is derived from the delivery count.
        """
        return tuple(self._list_dead_letters((each.offsets, self._likely_cause(each)) for each in self._ranges))

    def complete_dead_letters(self, first_offset: int, last_offset: int) -> Effects:
        """Archive records of DeadLetters after they were copied, or after the copy failed for good."""
        if self._is_fenced:
            return NOTHING
        changes = StateChanges()
        for each in self._cut_out(first_offset, last_offset):
            if each.state == RecordState.ARCHIVING and not each.is_changing:
                each.change_state(RecordState.ARCHIVED)
                changes.add(each)
        self._merge(first_offset, last_offset)
        effects = self._persist(changes) if changes.batches else NOTHING
        self._advance_start()
        return effects

    def move_log_start(self, log_start_offset: int) -> None:
        """Forget the records before the new start of the log. The new start offset is persisted with the next write."""
        if log_start_offset <= self._start_offset:
            return
        if log_start_offset >= self._end_offset:
            self._ranges.clear()
            self._start_offset = self._end_offset = log_start_offset
        else:
            self._split(log_start_offset)
            del self._ranges[: self._index(log_start_offset)]
            self._start_offset = log_start_offset
            self._advance_start()

    def check(self) -> None:
        """Assert what holds between two steps. It is cheap: the ranges are few."""
        assert self._start_offset <= self._end_offset
        position = self._start_offset
        for each in self._ranges:
            assert each.first_offset == position, "the ranges cover the window"
            assert each.last_offset >= each.first_offset
            assert each.batch.first_offset <= each.first_offset
            assert each.last_offset <= each.batch.last_offset
            assert (each.state == RecordState.ACQUIRED) == (each.member_id != NO_MEMBER)
            assert each.state != RecordState.ACQUIRED or each.deadline is not None
            assert not (each.state == RecordState.ACQUIRED and each.is_changing)
            position = each.last_offset + 1
        assert position == self._end_offset
        assert not self._ranges or not self._ranges[0].is_finished, "the start offset is not behind"

    # The list of ranges

    def _restore(self, batches: Iterable[PersisterStateBatch]) -> None:
        for batch in combine_state_batches((), batches, self._start_offset):
            # The coordinator knows nothing of records that were acquired and never released.
            self._append(self._end_offset, batch.first_offset - 1, RecordState.AVAILABLE, 0)
            self._append(batch.first_offset, batch.last_offset, RecordState(batch.state), batch.delivery_count)
        self._advance_start()

    def _append(
        self, first_offset: int, last_offset: int, state: RecordState, delivery_count: int, member_id: str = NO_MEMBER
    ) -> None:
        """Extend the window by a batch that starts at its end; an empty one is ignored."""
        if last_offset < first_offset:
            return
        assert first_offset == self._end_offset
        batch = ClosedOffsetRange(first_offset, last_offset)
        self._ranges.append(InFlightRange(first_offset, last_offset, state, delivery_count, batch, member_id))
        self._end_offset = last_offset + 1

    def _index(self, offset: int) -> int:
        """Return the index of the range with that offset; the number of ranges for the end offset."""
        if offset >= self._end_offset:
            return len(self._ranges)
        return bisect_right(self._ranges, offset, key=first_offset_of) - 1

    def _split(self, offset: int) -> None:
        """Split a range so that one starts at `offset`; ignored outside the window."""
        if not self._start_offset < offset < self._end_offset:
            return
        index = self._index(offset)
        if self._ranges[index].first_offset != offset:
            self._ranges.insert(index + 1, self._ranges[index].cut(offset))

    def _overlapping(self, first_offset: int, last_offset: int) -> list[InFlightRange]:
        """Return the ranges with any of these offsets."""
        first_offset = max(first_offset, self._start_offset)
        last_offset = min(last_offset, self._end_offset - 1)
        if first_offset > last_offset:
            return []
        return self._ranges[self._index(first_offset) : self._index(last_offset) + 1]

    def _cut_out(self, first_offset: int, last_offset: int) -> list[InFlightRange]:
        """Return ranges of exactly these offsets, without those outside the window."""
        self._split(first_offset)
        self._split(last_offset + 1)
        return self._overlapping(first_offset, last_offset)

    def _ranges_in(self, offsets: Iterable[ClosedOffsetRange]) -> Iterator[InFlightRange]:
        for first_offset, last_offset in offsets:
            yield from self._cut_out(first_offset, last_offset)

    def _merge(self, first_offset: int, last_offset: int) -> None:
        """Make one range of adjacent equal ones, from the neighbour before these offsets to the neighbour after them."""
        low = max(0, self._index(max(first_offset, self._start_offset)) - 1)
        high = self._index(min(last_offset, self._end_offset)) + 2
        part = self._ranges[low:high]
        if not any(map(InFlightRange.may_join, part, part[1:])):
            return
        merged = part[:1]
        for each in part[1:]:
            if merged[-1].may_join(each):
                merged[-1].last_offset = each.last_offset
            else:
                merged.append(each)
        self._ranges[low:high] = merged

    def _merge_all(self) -> None:
        self._merge(self._start_offset, self._end_offset)

    def _advance_start(self) -> None:
        """Remove finished records from the front of the window."""
        unfinished = next((index for index, each in enumerate(self._ranges) if not each.is_finished), None)
        if unfinished is None:
            self._ranges.clear()
            self._start_offset = self._end_offset
        elif unfinished > 0:
            del self._ranges[:unfinished]
            self._start_offset = self._ranges[0].first_offset

    # Acquiring

    def _archive_missing(self, fetch_offset: int, first_offset: int) -> None:
        """Archive available records that the log no longer has: a read from `fetch_offset` returned nothing before `first_offset`."""
        if fetch_offset >= first_offset:
            return
        for each in self._cut_out(fetch_offset, first_offset - 1):
            if each.can_be_acquired:
                each.change_state(RecordState.ARCHIVED)

    def _acquire_again(
        self, member_id: str, first_offset: int, last_offset: int, capacity: int, mode: AcquireMode, now: float
    ) -> tuple[list[AcquiredRange], int, bool]:
        """Acquire available records of the window: the ranges, their number of records, and True if no more may be added.

        If a batch has records that were delivered often, nothing is delivered together with it, and only a part of it: half of
        the batch at first, then a quarter. On the last attempt each record is delivered alone.
        """
        limits = self.limits
        acquired: list[AcquiredRange] = []
        count = 0
        for batch, available in self._available_batches(first_offset, last_offset):
            if count >= capacity:
                break
            is_throttled = max(each.delivery_count for each in available) >= limits.throttle_delivery_count
            if is_throttled and count > 0:
                return acquired, count, True
            room = capacity - count if mode == AcquireMode.RECORD_LIMIT else batch.record_count
            count_before, is_reduced = count, False
            for each in available:
                from_batch = count - count_before
                if each.delivery_count >= limits.throttle_delivery_count and not is_reduced:
                    attempts = each.delivery_count - limits.throttle_delivery_count + 1
                    room, is_reduced = min(room, max(1, batch.record_count >> attempts)), True
                is_last_attempt = limits.max_delivery_count > 2 and each.delivery_count == limits.max_delivery_count - 1
                if from_batch >= room or (is_last_attempt and from_batch > 0):
                    break
                size = min(each.record_count, 1 if is_last_attempt else room - from_batch)
                self._lock(each.first_offset, each.first_offset + size - 1, member_id, now)
                acquired.append(AcquiredRange(each.first_offset, each.first_offset + size - 1, each.delivery_count))
                count += size
                if is_last_attempt:
                    break
            if is_throttled:
                return acquired, count, True
        return acquired, count, False

    def _available_batches(
        self, first_offset: int, last_offset: int
    ) -> list[tuple[ClosedOffsetRange, list[InFlightRange]]]:
        """Return the available ranges among these offsets, by batch."""
        self._split(first_offset)
        self._split(last_offset + 1)
        found: list[tuple[ClosedOffsetRange, list[InFlightRange]]] = []
        for each in self._overlapping(first_offset, last_offset):
            if not each.can_be_acquired:
                continue
            if not found or found[-1][0] != each.batch:
                found.append((each.batch, []))
            found[-1][1].append(each)
        return found

    def _acquire_new(
        self,
        member_id: str,
        fetched: FetchedRecords,
        last_offset: int,
        capacity: int,
        mode: AcquireMode,
        batch_size: int,
        now: float,
    ) -> list[AcquiredRange]:
        """Extend the window by records that were read for the first time, up to the end of the batch that reaches the capacity."""
        base = next(batch.first_offset for batch in fetched.batches if batch.last_offset >= self._end_offset)
        if base > self._end_offset:
            # The log has nothing in between.
            if self._ranges:
                self._append(self._end_offset, base - 1, RecordState.ARCHIVED, 0)
            else:
                self._start_offset = self._end_offset = base
        first_offset = self._end_offset
        wanted = first_offset + capacity - 1
        last_acquired = min(last_offset, wanted)
        for batch in fetched.batches:
            if batch.first_offset <= wanted <= batch.last_offset:
                last_acquired = min(last_offset, batch.last_offset)
        acquired: list[AcquiredRange] = []
        if mode == AcquireMode.RECORD_LIMIT:
            self._append(first_offset, last_acquired, RecordState.AVAILABLE, 0)
            last_acquired = min(last_acquired, wanted)
            acquired.append(AcquiredRange(first_offset, last_acquired, 1))
        else:
            for part in split_by_batches(first_offset, last_acquired, fetched.batches, batch_size):
                self._append(part.first_offset, part.last_offset, RecordState.AVAILABLE, 0)
                acquired.append(AcquiredRange(part.first_offset, part.last_offset, 1))
        for each in acquired:
            self._lock(each.first_offset, each.last_offset, member_id, now)
        return acquired

    def _lock(self, first_offset: int, last_offset: int, member_id: str, now: float) -> None:
        for each in self._cut_out(first_offset, last_offset):
            each.change_state(RecordState.ACQUIRED)
            each.delivery_count += 1
            each.member_id = member_id
            each.deadline = now + self.limits.lock_duration
            heappush(self._deadlines, each.deadline)

    def _archive_aborted(
        self, acquired: list[AcquiredRange], aborted: Sequence[ClosedOffsetRange]
    ) -> list[AcquiredRange]:
        """Archive the acquired records that a `read_committed` consumer must not see, and return the others."""
        kept = acquired
        for gap in aborted:
            remaining: list[AcquiredRange] = []
            for each in kept:
                first_offset, last_offset = max(gap[0], each.first_offset), min(gap[1], each.last_offset)
                if first_offset > last_offset:
                    remaining.append(each)
                    continue
                for archived in self._cut_out(first_offset, last_offset):
                    archived.change_state(RecordState.ARCHIVED)
                    archived.member_id, archived.deadline = NO_MEMBER, None
                if each.first_offset < first_offset:
                    remaining.append(AcquiredRange(each.first_offset, first_offset - 1, each.delivery_count))
                if each.last_offset > last_offset:
                    remaining.append(AcquiredRange(last_offset + 1, each.last_offset, each.delivery_count))
            kept = remaining
        return kept

    # Acknowledging

    def _acknowledge_batch(
        self, member_id: str, batch: ShareAcknowledgementBatch, changes: StateChanges, now: float
    ) -> ErrorCode:
        if batch.last_offset < self._start_offset:
            return ErrorCode.NONE
        if not self._ranges:
            return ErrorCode.INVALID_RECORD_STATE
        if batch.last_offset >= self._end_offset:
            return ErrorCode.INVALID_REQUEST
        first_offset = max(batch.first_offset, self._start_offset)
        for first, last, acknowledge_type in runs_of_types(batch, first_offset):
            for each in self._overlapping(first, last):
                if each.state != RecordState.ACQUIRED or each.member_id != member_id:
                    # This includes a range with a new state that is being persisted.
                    return ErrorCode.INVALID_RECORD_STATE
            for each in self._cut_out(first, last):
                if acknowledge_type == AcknowledgeType.RENEW:
                    each.deadline = now + self.limits.lock_duration
                    heappush(self._deadlines, each.deadline)
                    continue
                self._start_change(each, self._next_state(each, acknowledge_type), each.delivery_count, changes)
                if each.state == RecordState.ARCHIVING:
                    is_rejected = acknowledge_type == AcknowledgeType.REJECT
                    cause = DeadLetterCause.REJECTED if is_rejected else DeadLetterCause.DELIVERY_COUNT_EXCEEDED
                    changes.dead_letters.append((each.offsets, cause))
        return ErrorCode.NONE

    def _next_state(self, each: InFlightRange, acknowledge_type: AcknowledgeType) -> RecordState:
        """Return the state after an acknowledgement; an expired lock is a RELEASE."""
        gives_up = acknowledge_type == AcknowledgeType.REJECT or (
            acknowledge_type == AcknowledgeType.RELEASE and each.delivery_count >= self.limits.max_delivery_count
        )
        if gives_up:
            return RecordState.ARCHIVING if self.limits.has_dead_letter_queue else RecordState.ARCHIVED
        return ACKNOWLEDGED_STATES[acknowledge_type]

    def _start_change(
        self, each: InFlightRange, state: RecordState, delivery_count: int, changes: StateChanges
    ) -> None:
        """Give an acquired range its next state, until the write confirms or revokes it."""
        each.rollback_member_id, each.rollback_delivery_count = each.member_id, each.delivery_count
        each.change_state(state)
        each.member_id, each.delivery_count = NO_MEMBER, delivery_count
        changes.add(each)
        changes.revocable.append(each.offsets)

    # Persisting

    def _persist(self, changes: StateChanges) -> Effects:
        self._waiting.extend(changes)
        return Effects(write=self._send())

    def _send(self) -> StateWrite | None:
        """Return the next write, if there is anything to write and no write is outstanding."""
        if self._written is not None or not self._waiting.batches:
            return None
        self._written, self._waiting = self._waiting, StateChanges()
        return StateWrite(
            self._state_epoch,
            self._leader_epoch,
            self._start_offset,
            self.delivery_complete_count,
            combine_state_batches((), self._written.batches, self._start_offset),
        )

    def _confirm(self, written: StateChanges) -> None:
        for each in self._ranges_in(written.revocable):
            each.rollback_member_id, each.rollback_delivery_count, each.deadline = NO_MEMBER, 0, None

    def _roll_back(self, changes: StateChanges) -> None:
        for each in self._ranges_in(changes.revocable):
            assert each.is_changing
            assert each.deadline is not None
            each.state = RecordState.ACQUIRED
            each.member_id, each.delivery_count = each.rollback_member_id, each.rollback_delivery_count
            each.rollback_member_id, each.rollback_delivery_count = NO_MEMBER, 0
            # The lock may have expired meanwhile, and its time was passed.
            heappush(self._deadlines, each.deadline)

    def _list_dead_letters(self, offsets: Iterable[tuple[ClosedOffsetRange, DeadLetterCause]]) -> Iterator[DeadLetters]:
        """Yield those of the ranges that are archiving; a failed write may have restored some of them."""
        for (first_offset, last_offset), cause in offsets:
            for each in self._overlapping(first_offset, last_offset):
                if each.state == RecordState.ARCHIVING and not each.is_changing:
                    first, last = max(first_offset, each.first_offset), min(last_offset, each.last_offset)
                    yield DeadLetters(first, last, each.delivery_count, cause)

    def _likely_cause(self, each: InFlightRange) -> DeadLetterCause:
        if each.delivery_count >= self.limits.max_delivery_count:
            return DeadLetterCause.DELIVERY_COUNT_EXCEEDED
        return DeadLetterCause.REJECTED


def find_acknowledgement_error(batches: Sequence[ShareAcknowledgementBatch]) -> ErrorCode:
    """Return INVALID_REQUEST if the batches are not ascending, or one has unknown types or not one for each of its records; else NONE."""
    position = -1
    for batch in batches:
        is_ordered = position < batch.first_offset <= batch.last_offset
        is_complete = len(batch.types) in (1, batch.last_offset - batch.first_offset + 1)
        if not is_ordered or not is_complete or not KNOWN_TYPES.issuperset(batch.types):
            return ErrorCode.INVALID_REQUEST
        position = batch.last_offset
    return ErrorCode.NONE


KNOWN_TYPES = frozenset(map(int, AcknowledgeType))


def runs_of_types(batch: ShareAcknowledgementBatch, start_offset: int) -> Iterator[tuple[int, int, AcknowledgeType]]:
    """Yield the offsets from `start_offset` on as ranges of one type each."""
    if len(batch.types) == 1:
        yield start_offset, batch.last_offset, AcknowledgeType(batch.types[0])
        return
    position = start_offset
    for each, run in groupby(batch.types[start_offset - batch.first_offset :]):
        end = position + sum(1 for _ in run)
        yield position, end - 1, AcknowledgeType(each)
        position = end


def split_by_batches(
    first_offset: int, last_offset: int, batches: Iterable[ClosedOffsetRange], size: int
) -> Iterator[ClosedOffsetRange]:
    """Yield the offsets in parts of at least `size` records that start where a record batch starts."""
    position = first_offset
    for batch in batches:
        if batch.first_offset > last_offset:
            break
        if batch.first_offset - position >= size:
            yield ClosedOffsetRange(position, batch.first_offset - 1)
            position = batch.first_offset
    yield ClosedOffsetRange(position, last_offset)
