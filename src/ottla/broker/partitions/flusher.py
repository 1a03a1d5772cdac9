"""Forces logs to the disk in the disk's threads: when a file is full, when records get old, or before an answer.

A log is flushed by one thread at a time; who asks meanwhile shares the next flush with all others who do.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from ottla.broker.disk import Disk
from ottla.broker.partitions.complaints import Complaints
from ottla.broker.partitions.partition import Partition
from ottla.broker.timers import Timers
from ottla.clock import Clock
from ottla.model import INT64_MAX
from ottla.storage.log import Log

log = logging.getLogger(__name__)
Done = Callable[[BaseException | None], None]


class Flusher:
    """Decides when a partition is flushed and sees to it."""

    def __init__(self, disk: Disk, timers: Timers, clock: Clock) -> None:
        self._disk = disk
        self._timers = timers
        self._clock = clock
        self._complaints = Complaints(clock)
        self.suspect: Callable[[BaseException | None, Partition | None], None] = lambda error, partition: None
        """Told of errors that may mean that a directory has failed."""

    def appended(self, partition: Partition, opened: Log) -> None:
        """After an append: flush the files that are full now, and set a time for what `flush.ms` asks."""
        if opened.awaits_flush:
            if not partition.flushing:
                self.flush(partition, ignore)
        elif opened.config.flush_ms < INT64_MAX and not partition.flush_is_set:
            self._flush_at(partition, self._clock.monotonic() + opened.config.flush_ms / 1000)

    def flush(self, partition: Partition, done: Done) -> None:
        """Force everything appended so far to the disk, then call `done` in the loop, with the error if there is one."""
        partition.awaiting_flush.append(done)
        if not partition.flushing:
            self._begin(partition)

    def _begin(self, partition: Partition) -> None:
        served, partition.awaiting_flush = partition.awaiting_flush, []
        partition.flushing = True
        opened = partition.log
        self._disk.submit(opened.flush, lambda error: self._end(partition, opened, served, error))

    def _end(self, partition: Partition, opened: Log, served: list[Done], error: BaseException | None) -> None:
        partition.flushing = False
        if error is not None and not opened.closed:
            self._complaints.tell(str(error))
            self.suspect(error, partition)
        for done in served:
            try:
                done(error)
            except Exception:  # one waiting request must not keep the others, and later flushes, from being served
                log.exception("the end of a flush could not be reported partition=%s", partition)
        # A file may have become full while the one before was being forced.
        more = error is None and opened.awaits_flush
        if (partition.awaiting_flush or more) and not opened.closed:
            self._begin(partition)

    def _flush_at(self, partition: Partition, deadline: float) -> None:
        partition.flush_is_set = True
        self._timers.at(deadline, lambda: self._flush_now(partition))

    def _flush_now(self, partition: Partition) -> None:
        partition.flush_is_set = False
        opened = partition.opened_log
        if opened is not None and not opened.closed:
            self.flush(partition, ignore)


def must_flush_first(opened: Log) -> bool:
    """Whether `flush.messages` wants what was appended on the disk before it is acknowledged."""
    wanted = opened.config.flush_messages
    return wanted < INT64_MAX and opened.end_offset - opened.recovery_point >= wanted


def ignore(error: BaseException | None) -> None:
    """Nobody waits for this flush, so nobody is told."""
