"""Force logs to the disk in the disk threads: when a segment is full, after `flush.ms`, or before a response.

A log is flushed by one thread at a time. Requests that arrive meanwhile share the next flush.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from ottla.broker.event_loop.disk import Disk
from ottla.broker.event_loop.timers import Timers
from ottla.broker.replica_manager.partition import Partition
from ottla.broker.replica_manager.repeated_warnings import RepeatedWarnings
from ottla.clock import Clock
from ottla.model import INT64_MAX
from ottla.storage.log import Log

log = logging.getLogger(__name__)
Done = Callable[[BaseException | None], None]
Suspect = Callable[[BaseException | None, Partition | None], None]


class LogFlusher:
    """Decides when a partition is flushed and sees to it."""

    def __init__(self, disk: Disk, timers: Timers, clock: Clock, suspect: Suspect) -> None:
        """`suspect` is called with errors that may mean a failed directory."""
        self.suspect = suspect
        self._disk = disk
        self._timers = timers
        self._clock = clock
        self._complaints = RepeatedWarnings(clock)

    def handle_append(self, partition: Partition, opened: Log) -> None:
        """After an append: flush the segments that are full, and schedule the flush of `flush.ms`."""
        if opened.is_awaiting_flush:
            if not partition.flushing:
                self.flush(partition, ignore_error)
        elif opened.config.flush_ms < INT64_MAX and not partition.flush_is_set:
            self._flush_at(partition, self._clock.monotonic() + opened.config.flush_ms / 1000)

    def flush(self, partition: Partition, done: Done) -> None:
        """Force everything appended so far to the disk, then call `done` in the loop, with the error if there is one."""
        partition.awaiting_flush.append(done)
        if not partition.flushing:
            self._start(partition)

    def _start(self, partition: Partition) -> None:
        served, partition.awaiting_flush = partition.awaiting_flush, []
        partition.flushing = True
        opened = partition.log
        self._disk.submit(opened.flush, lambda error: self._end(partition, opened, served, error))

    def _end(self, partition: Partition, opened: Log, served: list[Done], error: BaseException | None) -> None:
        partition.flushing = False
        if error is not None and not opened.closed:
            self._complaints.log(str(error))
            self.suspect(error, partition)
        for done in served:
            try:
                done(error)
            except Exception:  # one waiting request must not keep the others, and later flushes, from being served
                log.exception("the end of a flush could not be reported partition=%s", partition)
        # A file may have become full while the one before was being forced.
        more = error is None and opened.is_awaiting_flush
        if (partition.awaiting_flush or more) and not opened.closed:
            self._start(partition)

    def _flush_at(self, partition: Partition, deadline: float) -> None:
        partition.flush_is_set = True
        self._timers.schedule(deadline, lambda: self._flush_now(partition))

    def _flush_now(self, partition: Partition) -> None:
        partition.flush_is_set = False
        opened = partition.opened_log
        if opened is not None and not opened.closed:
            self.flush(partition, ignore_error)


def must_flush_first(opened: Log) -> bool:
    """Return True if `flush.messages` requires a flush before the append is acknowledged."""
    wanted = opened.config.flush_messages
    return wanted < INT64_MAX and opened.end_offset - opened.recovery_point >= wanted


def ignore_error(error: BaseException | None) -> None:
    """Ignore the result of a flush that no request waits for."""
