"""One partition as one share group reads it, at the leader of the partition (KIP-932).

    ReadShareGroupState ──► start offset known, or found by share.auto.offset.reset ──► ready
                                                                                          │  leadership lost, state reset, topic deleted
    acquire, acknowledge, release, locks expire ──► WriteShareGroupState ◄────────────────┤
                                                                                          ▼
                                                                                         ended

`coordination.share.SharePartition` decides. This class gives it the log, the time and the results of writes, and wakes the fetches that
wait for records. Apache Kafka's SharePartition is both.
"""

from __future__ import annotations

import itertools
import logging
import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from ottla.broker.coordinators.share_coordinator import ReadState, StateResult, WriteState
from ottla.broker.coordinators.share_persister import SharePersister
from ottla.broker.event_loop.timers import Timer, Timers
from ottla.broker.replica_manager.fetch_purgatory import FetchPurgatory
from ottla.broker.replica_manager.partition import Partition
from ottla.broker.share.share_counts import ShareCounts, SharePartitionView
from ottla.broker.share.share_group_settings import EARLIEST, ShareGroupSettings
from ottla.broker.share.share_log_reader import LogRecords, read_records
from ottla.clock import Clock
from ottla.coordination.cluster.group_configs import parse_reset_duration
from ottla.coordination.share.events import (
    AcquiredRange,
    AcquireMode,
    DeadLetters,
    Effects,
    PersistedState,
    ShareAcknowledgementBatch,
)
from ottla.coordination.share.record_state import AcknowledgeType
from ottla.coordination.share.share_partition import PERSIST_ERRORS, SharePartition
from ottla.coordination.share.share_state import UNKNOWN, SharePartitionKey
from ottla.errors import CorruptRecordError, ErrorCode, KafkaError

if TYPE_CHECKING:
    from ottla.broker.replica_manager.fetch_session import FetchedPartition
    from ottla.broker.replica_manager.waiting_fetch import WaitingFetch

log = logging.getLogger(__name__)
OnCode = Callable[[int], None]
"""Called with the error code of a request."""


class DeadLetterCopier(Protocol):
    """Copies records to the dead letter queue of a group."""

    def copy(
        self,
        group_id: str,
        source: Partition,
        letters: DeadLetters,
        settings: ShareGroupSettings,
        on_done: Callable[[], None],
    ) -> None:
        """Copy records, and call `on_done` when they are copied or cannot be."""
        ...

    def handle_new_metadata(self) -> None:
        """Continue the copies that waited for a topic."""
        ...

    def close(self) -> None: ...


class ShareLeaderContext(Struct, frozen=True):
    """The parts of a broker that the leader's side of share groups uses."""

    persister: SharePersister
    clock: Clock
    timers: Timers
    waiting: FetchPurgatory
    settings: Callable[[str], ShareGroupSettings]
    """Return the settings of a group."""
    dead_letters: DeadLetterCopier
    counts: ShareCounts


class LedSharePartition:
    """The records that one group has in flight in one partition."""

    def __init__(
        self,
        key: SharePartitionKey,
        partition: Partition,
        context: ShareLeaderContext,
        on_end: Callable[[LedSharePartition], None],
    ) -> None:
        """`on_end` is called when the object must not be used any more."""
        self.key = key
        self.partition = partition
        self.waiting: dict[WaitingFetch, None] = {}
        """Fetches that wait for the state, or for records that are available again."""
        self.watchers: dict[FetchedPartition, None] = {}
        self.error: int = ErrorCode.NONE
        """The reason why it has ended."""
        self._context = context
        self._on_end = on_end
        self._machine: SharePartition | None = None
        self._leader_epoch = partition.leader_epoch
        self._tickets = itertools.count(1)
        self._callbacks: dict[int, OnCode] = {}
        self._timer: Timer | None = None
        self._queue: list[Effects] = []
        self._is_applying = False

    def __str__(self) -> str:
        return f"{self.partition} of share group {self.key.group_id}"

    @property
    def is_ready(self) -> bool:
        """True once the state was read, until it has ended."""
        return self._machine is not None and not self.error

    @property
    def has_ended(self) -> bool:
        return bool(self.error)

    @property
    def may_acquire(self) -> bool:
        """True if a fetch can acquire records that the log has."""
        machine = self._machine
        if machine is None or self.error or not machine.can_acquire:
            return False
        return machine.next_fetch_offset < self.partition.log.high_watermark

    @property
    def start_offset(self) -> int:
        return UNKNOWN if self._machine is None else self._machine.start_offset

    def start(self) -> None:
        """Read the state from the share coordinator; fetches wait meanwhile."""
        self._context.persister.submit(ReadState(self.key, self._leader_epoch), self._handle_state)

    def read(self, max_bytes: int, max_records: int, settings: ShareGroupSettings) -> LogRecords | None:
        """Return the records from which a fetch may acquire. Raise KafkaError if the log cannot be read."""
        machine = self._require_machine()
        machine.limits = settings.limits
        opened = self.partition.log
        if opened.start_offset > machine.start_offset:
            machine.move_log_start(opened.start_offset)
        if not machine.can_acquire:
            return None
        try:
            return read_records(
                opened, machine.next_fetch_offset, max_bytes, max_records, committed=settings.reads_committed
            )
        except CorruptRecordError as error:
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"cannot read {self.partition}: {error}") from error

    def acquire(
        self, member_id: str, records: LogRecords, max_records: int, mode: AcquireMode, batch_size: int
    ) -> tuple[AcquiredRange, ...]:
        """Give a member records that were just read."""
        machine = self._require_machine()
        acquired = machine.acquire(
            member_id, records.fetched, max_records, self._context.clock.monotonic(), mode, max(1, batch_size)
        )
        self._context.counts.count_acquired(
            self.key.group_id, sum(each.last_offset - each.first_offset + 1 for each in acquired)
        )
        self._set_timer()
        return acquired

    @property
    def next_fetch_offset(self) -> int:
        return self._require_machine().next_fetch_offset

    def acknowledge(
        self,
        member_id: str,
        batches: Sequence[ShareAcknowledgementBatch],
        settings: ShareGroupSettings,
        on_code: OnCode,
    ) -> None:
        """Acknowledge records; `on_code` is called once the result is persisted, possibly within this call."""
        machine = self._require_machine()
        machine.limits = settings.limits
        renews = any(AcknowledgeType.RENEW in each.types for each in batches)
        if renews and not settings.may_renew:
            on_code(ErrorCode.INVALID_RECORD_STATE)
            return

        def finish(code: int) -> None:
            if not code:
                self._context.counts.count_acknowledged(self.key.group_id, batches)
            on_code(code)

        ticket = self._new_ticket(finish)
        self._apply(machine.acknowledge(ticket, member_id, batches, self._context.clock.monotonic()))

    def release_member(self, member_id: str, on_code: OnCode) -> None:
        """Release the records that a member has acquired."""
        machine = self._require_machine()
        self._apply(machine.release_member(self._new_ticket(on_code), member_id))

    def expire_all_locks(self) -> int:
        """Release the records of all members as if their locks had expired now, and return their number."""
        machine = self._require_machine()
        count = machine.acquired_count
        self._apply(machine.expire_locks(math.inf))
        return count

    def describe(self) -> SharePartitionView:
        """Return the state of the partition, for metrics."""
        machine, place = self._require_machine(), self.partition.topic_partition
        unfinished = self.partition.log.high_watermark - machine.start_offset - machine.delivery_complete_count
        return SharePartitionView(
            self.key.group_id,
            place.topic,
            place.partition,
            machine.start_offset,
            machine.acquired_count,
            max(0, unfinished),
            machine.unfinished_counts,
        )

    def end(self, error: int) -> None:
        """Stop, and fail the requests that wait."""
        if self.error:
            return
        self.error = error
        if self._timer is not None:
            self._context.timers.cancel(self._timer)
            self._timer = None
        if self._machine is not None:
            self._complete(self._machine.fence())
        self._on_end(self)
        self._wake()

    def _require_machine(self) -> SharePartition:
        assert self._machine is not None, "the state has not been read"
        return self._machine

    def _new_ticket(self, on_code: OnCode) -> int:
        ticket = next(self._tickets)
        self._callbacks[ticket] = on_code
        return ticket

    def _handle_state(self, result: StateResult) -> None:
        if self.error:
            return
        if result.error:
            self.end(PERSIST_ERRORS.get(ErrorCode(result.error), ErrorCode.UNKNOWN_SERVER_ERROR))
            return
        settings = self._context.settings(self.key.group_id)
        try:
            opened = self.partition.log
            start_offset = self._find_start(settings) if result.start_offset == UNKNOWN else result.start_offset
        except KafkaError as error:
            self.end(error.code)
            return
        state = PersistedState(result.state_epoch, start_offset, result.batches)
        self._machine = SharePartition(state, self._leader_epoch, settings.limits)
        self._machine.move_log_start(opened.start_offset)
        log.info("share partition loaded %s start=%d end=%d", self, start_offset, self._machine.end_offset)
        self._copy(self._machine.resume_dead_letters())
        self._wake()

    def _find_start(self, settings: ShareGroupSettings) -> int:
        """Return the offset at which a new group starts, by `share.auto.offset.reset`."""
        opened = self.partition.log
        if settings.offset_reset == EARLIEST:
            return opened.start_offset
        duration = parse_reset_duration(settings.offset_reset)
        if duration is not None:
            since_ms = self._context.clock.wall_ms() - int(duration.total_seconds() * 1000)
            found = opened.offset_for_timestamp(since_ms)
            if found is not None:
                return found.offset
        return opened.high_watermark

    # Steps of the machine may follow from each other: a write that completes at once leads to the next step. They are queued, so
    # that each one is finished before the next one starts.
    def _apply(self, effects: Effects) -> None:
        self._queue.append(effects)
        if self._is_applying:
            return
        self._is_applying = True
        try:
            while self._queue:
                self._complete(self._queue.pop(0))
        finally:
            self._is_applying = False
        machine = self._require_machine()
        if machine.is_fenced and not self.error:
            self.end(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        elif not self.error:
            self._set_timer()
            if machine.can_acquire:
                self._wake()

    def _complete(self, effects: Effects) -> None:
        self._context.counts.count_expired(self.key.group_id, effects.expired_count)
        if effects.completions and self.waiting and self._require_machine().can_acquire:
            # Before the completions: a member that acknowledges and fetches in one request would otherwise always be first.
            self._wake()
        for ticket, error in effects.completions:
            callback = self._callbacks.pop(ticket, None)
            if callback is not None:
                callback(error)
        self._copy(effects.dead_letters)
        if effects.write is not None:
            write = effects.write
            operation = WriteState(
                self.key,
                write.state_epoch,
                write.leader_epoch,
                write.start_offset,
                write.delivery_complete_count,
                write.batches,
            )
            self._context.persister.submit(operation, self._handle_written)

    def _handle_written(self, result: StateResult) -> None:
        if self.error:
            return
        if result.error:
            log.warning("the state of %s was not written error=%d", self, result.error)
        machine = self._require_machine()
        self._apply(machine.complete_write(ErrorCode(result.error), self._context.clock.monotonic()))

    def _copy(self, letters: Sequence[DeadLetters]) -> None:
        if not letters:
            return
        settings = self._context.settings(self.key.group_id)
        for each in letters:
            self._context.dead_letters.copy(
                self.key.group_id, self.partition, each, settings, partial(self._handle_copied, each)
            )

    def _handle_copied(self, letters: DeadLetters) -> None:
        if not self.error and self._machine is not None:
            self._apply(self._machine.complete_dead_letters(letters.first_offset, letters.last_offset))

    def _set_timer(self) -> None:
        deadline = self._require_machine().next_deadline
        if self._timer is not None:
            if deadline is not None and self._timer.callback is not None and self._timer.deadline <= deadline:
                return
            self._context.timers.cancel(self._timer)
            self._timer = None
        if deadline is not None:
            self._timer = self._context.timers.schedule(deadline, self._expire_locks)

    def _expire_locks(self) -> None:
        self._timer = None
        self._apply(self._require_machine().expire_locks(self._context.clock.monotonic()))

    def _wake(self) -> None:
        if self.waiting:
            self._context.waiting.recheck([self])
