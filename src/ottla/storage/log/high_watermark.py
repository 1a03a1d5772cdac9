"""Up to where a log is committed, and what follows from it for transactions.

    log start ≤ last stable offset ≤ high watermark ≤ log end

A log that no other broker has a copy of is committed as soon as it is appended to: there the high watermark goes with the end, and
nothing below costs anything. Else who leads or follows moves it, never back and never beyond the end; only a cut takes it along.

**A transaction is stable when its marker is committed**, not when it is written: until then the marker may be cut off with the end of
the log, and the transaction may end otherwise. So those that ended at or above the watermark hold back readers of committed records
as those do that are open.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.records.batch import BatchHeader
from ottla.storage.producers.producer_entry import NONE
from ottla.storage.recovery.producer_recovery import open_transactions_at

if TYPE_CHECKING:
    from ottla.storage.log.log import Log


def resume(log: Log, checkpoint: int | None) -> None:
    """Take up a log that was opened: where a checkpoint says, but within the log; at the end where there is no other copy."""
    log.high_watermark = log.end_offset if checkpoint is None else within(log, checkpoint)
    if log.high_watermark < log.end_offset:
        log.unreplicated = ended_above(log)


def within(log: Log, offset: int) -> int:
    """The offset, or the nearest that the log has."""
    return min(max(offset, log.start_offset), log.end_offset)


def advance(log: Log, offset: int) -> bool:
    """What `Log.advance_high_watermark` does."""
    offset = within(log, offset)
    if offset <= log.high_watermark:
        return False
    log.high_watermark = offset
    if log.unreplicated:
        log.unreplicated = {first: marker for first, marker in log.unreplicated.items() if marker >= offset}
    return True


def note_end(log: Log, header: BatchHeader) -> None:
    """Before a marker becomes state: the transaction that it ends is not stable until the marker is committed."""
    entry = log.producers.entries.get(header.producer_id)
    if entry is not None and entry.transaction_start != NONE:
        log.unreplicated[entry.transaction_start] = header.base_offset


def forget_from(log: Log, end_offset: int) -> None:
    """The log ends there now: markers from there on are no more, and so the transactions are open that they ended."""
    log.high_watermark = min(log.high_watermark, end_offset)
    log.unreplicated = {first: marker for first, marker in log.unreplicated.items() if marker < end_offset}


def stable_offset(log: Log) -> int:
    """The last stable offset where there are copies."""
    first = log.producers.first_unstable_offset
    unstable = min(log.unreplicated, default=log.high_watermark)
    return max(min(log.high_watermark, unstable, log.high_watermark if first is None else first), log.start_offset)


def ended_above(log: Log) -> dict[int, int]:
    """The transactions that were open at the watermark and are not at the end, each with an offset that its marker is not above."""
    still_open = set(log.producers.open)
    began = open_transactions_at(log.directory, log.segments, log.high_watermark)
    return {first: log.end_offset - 1 for first in began if first not in still_open}
