"""The steps of a compaction in the log's own thread: the data for a cleaner, and the exchange of segments."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Generator
from functools import partial

from ottla.storage.batches.damage import DamagedLogError
from ottla.storage.cleaning.cleaner import CleanedTransactionState, Cleaner
from ottla.storage.cleaning.cleaning_plan import CleaningPlan, Extent, plan_compaction
from ottla.storage.files.storage_error import storage_error
from ottla.storage.log import Log
from ottla.storage.producers.producer_state import find_first_unsure


def plan_log_compaction(log: Log, cleaned_up_to: int, now_ms: int) -> CleaningPlan:
    """Return the part of the log that could be compacted now, after an earlier compaction up to an offset."""
    try:
        return plan_compaction(
            log.segments,
            log.config,
            cleaned_up_to=cleaned_up_to,
            start_offset=log.start_offset,
            end_offset=log.end_offset,
            safe_up_to=min(log.recovery_point, log.last_stable_offset),
            now_ms=now_ms,
        )
    except OSError as error:
        raise storage_error(f"cannot list the segments in {log.directory}", error) from error


def find_extents(log: Log, upper_bound: int) -> list[Extent]:
    """Return the segments below a segment's base offset."""
    pairs = zip(log.segments, log.bases[1:], strict=False)
    return [
        Extent(segment.base_offset, following, segment.size, segment.indexes.size_on_disk())
        for segment, following in pairs
        if following <= upper_bound
    ]


def collect_transactions(log: Log, upper_bound: int) -> CleanedTransactionState:
    """Return the transactions with records below an offset, and the last record of each producer.

    DamagedLogError is raised if files are lost there: the rest must not look as if they had been compacted away.
    """
    for segment in log.segments[: bisect_left(log.bases, upper_bound)]:
        for missing in segment.ranges.missing:
            raise DamagedLogError(missing)
    aborted = log.find_aborted(0, log.bases[0], upper_bound)
    unsure = find_first_unsure(aborted)
    if unsure is not None:
        raise DamagedLogError(log.unsure_end(unsure))
    return CleanedTransactionState(aborted, log.producers.last_records())


def clean_in_steps(log: Log, cleaner: Cleaner) -> Generator[Callable[[], None], None, None]:
    """One pass, as the work that may be done in another thread; what is between them is for the log's own.

    Ends early where the log was deleted meanwhile.
    """
    yield cleaner.read_keys
    for group in cleaner.groups():
        if log.closed:
            return
        yield partial(cleaner.write, group)
        if log.closed or cleaner.offered is None:
            return
        log.replace([extent.base_offset for extent in group], cleaner.offered)
        yield partial(cleaner.replace_segments, group)
