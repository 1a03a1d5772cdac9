"""The values that a SharePartition takes and returns. Offsets of ranges are inclusive; times are monotonic, in seconds."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple

from msgspec import Struct

from ottla.coordination.share.state_batches import PersisterStateBatch
from ottla.errors import ErrorCode


class ClosedOffsetRange(NamedTuple):
    """The offsets from `first_offset` to `last_offset`."""

    first_offset: int
    last_offset: int

    @property
    def record_count(self) -> int:
        return self.last_offset - self.first_offset + 1


class AcquiredRange(NamedTuple):
    """Records that a member acquired, as ShareFetch returns them."""

    first_offset: int
    last_offset: int
    delivery_count: int


class ShareAcknowledgementBatch(NamedTuple):
    """The acknowledgement of a range of offsets: one type for all of them, or one for each."""

    first_offset: int
    last_offset: int
    types: Sequence[int]


class FetchedRecords(Struct, frozen=True):
    """The records that were read from the log for one ShareFetch."""

    fetch_offset: int
    """The offset that was read from."""
    batches: tuple[ClosedOffsetRange, ...]
    """The record batches, ascending. The first may start before `fetch_offset`."""
    aborted: tuple[ClosedOffsetRange, ...] = ()
    """The batches of aborted transactions and control batches, ascending; empty for `read_uncommitted`."""


class AcquireMode(Enum):
    """`share.acquire.mode` of a consumer (KIP-1206), with the numbers of ShareFetch."""

    BATCH_OPTIMIZED = 0
    """Whole batches; the limit of records may be exceeded by the last one."""
    RECORD_LIMIT = 1
    """No more records than the limit."""


class ShareLimits(Struct, frozen=True):
    """The settings of the group. They may change while the partition is led."""

    max_in_flight_records: int = 2000
    """`group.share.partition.max.record.locks`"""
    max_delivery_count: int = 5
    """`group.share.delivery.count.limit`"""
    lock_duration: float = 30.0
    """`share.record.lock.duration.ms`, in seconds."""
    has_dead_letter_queue: bool = False
    """True if records that are given up are copied to a topic first (KIP-1191)."""

    @property
    def throttle_delivery_count(self) -> int:
        """From this delivery count on, fewer records are delivered together, so that one bad record does not use up the attempts of others."""
        return max(2, (self.max_delivery_count + 1) // 2)


class PersistedState(Struct, frozen=True):
    """The state of a partition that the share coordinator returned."""

    state_epoch: int
    start_offset: int
    batches: tuple[PersisterStateBatch, ...] = ()


class StateWrite(Struct, frozen=True):
    """A WriteShareGroupState request. Its result is passed to `SharePartition.complete_write`."""

    state_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int
    """The number of records from `start_offset` on that are acknowledged or archived (KIP-1226)."""
    batches: tuple[PersisterStateBatch, ...]


class DeadLetterCause(Enum):
    """The reason for copying records to the dead letter queue."""

    REJECTED = "rejected by a consumer"
    DELIVERY_COUNT_EXCEEDED = "delivered as often as the group allows"


class DeadLetters(NamedTuple):
    """Records to copy to the dead letter queue, after which `SharePartition.complete_dead_letters` is called."""

    first_offset: int
    last_offset: int
    delivery_count: int
    cause: DeadLetterCause


class Completion(NamedTuple):
    """The result of a request, which is identified by the ticket that was passed with it."""

    ticket: int
    error: ErrorCode


class Effects(Struct, frozen=True):
    """The actions of the caller after a step."""

    write: StateWrite | None = None
    completions: tuple[Completion, ...] = ()
    dead_letters: tuple[DeadLetters, ...] = ()
    expired_count: int = 0
    """Records whose locks expired in this step."""
