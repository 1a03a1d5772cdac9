"""The log cleaner: checks from time to time which logs are worth compacting, and compacts one after the other.

It works in a disk thread with many pauses, since it shares the interpreter with the loop. Logs are changed in the loop,
in between. The log with the highest dirty ratio is first.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Generator, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from ottla.broker.event_loop.disk import Disk
from ottla.broker.event_loop.timers import Timers
from ottla.broker.replica_manager.partition import Partition
from ottla.broker.replica_manager.partition_sweep import PartitionSweep
from ottla.broker.replica_manager.repeated_warnings import RepeatedWarnings
from ottla.broker.settings.config import BrokerConfig
from ottla.clock import Clock
from ottla.errors import CorruptRecordError, KafkaError
from ottla.model import TopicPartition
from ottla.storage.batches.damage import OutOfServiceError
from ottla.storage.directory.data_directories import DataDirectories
from ottla.storage.directory.data_directory import DataDirectory
from ottla.storage.log import Log
from ottla.trace import EventStream

if TYPE_CHECKING:
    from ottla.storage.cleaning.cleaner import Cleaner
    from ottla.storage.cleaning.cleaning_plan import CleaningPlan
    from ottla.storage.segments.swap import SegmentSwap

log = logging.getLogger(__name__)
PAUSE_SECONDS = 0.0002
"""The pause of the thread after each step, for the event loop. A step takes some tenths of a millisecond."""
SEED_BYTES = 16
Steps = Generator[Callable[[], None], None, None]


class CleaningBegun(NamedTuple):
    """The compaction of a log has started."""

    partition: TopicPartition
    dirty_ratio: float
    dirty_bytes: int

    def __str__(self) -> str:
        return f"{self.partition}: compaction begins, {self.dirty_bytes} bytes are dirty ({self.dirty_ratio:.0%})"


class Compacted(NamedTuple):
    """The result of one pass over a log."""

    partition: TopicPartition
    end_offset: int
    seconds: float
    bytes_left: int
    bytes_before: int

    def __str__(self) -> str:
        return (
            f"{self.partition}: compacted up to offset {self.end_offset} in {self.seconds:.3f} s: "
            f"{self.bytes_left} bytes of {self.bytes_before} are left"
        )


class CleaningAbandoned(Exception):
    """The work has become pointless: the topic is deleted, or the broker stops."""


class LogCleaner:
    """Chooses the logs to compact, and compacts one at a time."""

    def __init__(
        self,
        config: BrokerConfig,
        directory: DataDirectory | DataDirectories,
        disk: Disk,
        timers: Timers,
        clock: Clock,
    ) -> None:
        self._config = config
        self._directory = directory
        self._disk = disk
        self._clock = clock
        self._sweep = PartitionSweep(timers, clock, self._consider_partition)
        self._due: dict[Partition, float] = {}
        """The dirty ratio of each partition that is to be compacted."""
        self._steps: Steps | None = None
        self._exchange: SegmentSwap | None = None
        """The files of an exchange that a failure left incomplete, and that must not be deleted."""
        self._unfinished: dict[Partition, tuple[Log, Callable[[], None]]] = {}
        """Work that a disk error left, to be finished before anything else is done to the files of these logs."""
        self._finish_due = False
        self._stopped = False
        self.current: tuple[Partition, float] | None = None
        """The partition that is being compacted, and the start by the monotonic clock."""
        self.checked_at: dict[Partition, float] = {}
        """The dirty ratio of each log at the last check."""
        self.events = EventStream()
        """The events of compactions that start and end."""
        self._given_up: set[Log] = set()
        """Logs that are not compacted until the broker restarts, since their compaction failed."""
        self._complaints = RepeatedWarnings(clock)
        self._complained: set[Log] = set()
        """Logs for which the disk had no room when last tried."""

    def configure(self, config: BrokerConfig) -> None:
        """Apply other settings from the next pass on."""
        self._config = config

    @property
    def due(self) -> Mapping[Partition, float]:
        """The partitions to compact, with the dirty ratio of each."""
        return self._due

    def choose_partitions(self, partitions: Iterable[Partition]) -> None:
        """Find the logs that are worth compacting, and start unless a log is under way."""
        self._finish_due = True
        for gone in [each for each in self.checked_at if each.opened_log is None or each.opened_log.closed]:
            del self.checked_at[gone]
        self._start_next()
        self._sweep.start(partitions)

    def stop(self) -> None:
        """Start no more compactions, and stop the present one soon.

        Its temporary files are removed at the next start.
        """
        self._stopped = True

    def _consider_partition(self, partition: Partition) -> None:
        try:
            plan = self._plan(partition)
        except OutOfServiceError:
            return  # logged before
        except KafkaError as error:
            self._complaints.log(str(error))
            return
        if plan is not None:
            self._due[partition] = plan.dirty_ratio
            self._start_next()

    def _plan(self, partition: Partition) -> CleaningPlan | None:
        """Return the plan for compacting a partition, None if that is not worth it."""
        if partition.opened_log is None and not self._directory.folder(partition.topic_partition).is_dir():
            return None
        opened = partition.log
        if opened.closed or opened.cleaning or len(opened.bases) == 1 or opened in self._given_up:
            return None
        from ottla.storage.cleaning.log_cleaning import (
            plan_log_compaction,  # when there is something to compact, not at the start
        )

        done = self._directory.cleaned_to(partition.topic_partition)
        plan = plan_log_compaction(opened, done, self._clock.wall_ms())
        self.checked_at[partition] = plan.dirty_ratio
        return plan if plan.is_due(opened.config) and opened.config.is_compacted else None

    def _start_next(self) -> None:
        """Finish what a disk error left, then start with the log of the highest dirty ratio."""
        if self._unfinished and self._finish_due and self._steps is None and not self._stopped:
            self._finish_due = False
            self._steps = self._finish(dict(self._unfinished))
            self._continue(None)
        while self._due and self._steps is None and not self._stopped:
            partition = max(self._due, key=self._due.__getitem__)
            del self._due[partition]
            plan = self._plan(partition)
            if plan is not None:
                self._steps = self._clean(partition, partition.log, plan)
                self._continue(None)

    def _finish(self, unfinished: Mapping[Partition, tuple[Log, Callable[[], None]]]) -> Steps:
        """Finish the changes that a disk error left, if the disk allows it now.

        These logs had no compaction or retention meanwhile.
        """
        for partition, (opened, work) in unfinished.items():
            try:
                if not opened.closed:
                    yield work
                    log.info("%s: its files are complete again", partition.topic_partition)
            except OSError as error:
                log.debug("%s: the disk still returns an error: %s", partition.topic_partition, error)
                continue
            del self._unfinished[partition]
            opened.cleaning = False
            self._complained.discard(opened)

    def _continue(self, error: BaseException | None) -> None:
        """Run the next step, after the previous one has ended with or without an error."""
        steps = self._steps
        assert steps is not None
        if self._stopped:
            steps.close()
            return
        try:
            work = next(steps) if error is None else steps.throw(error)
        except StopIteration:
            self._steps = None
            self._start_next()
        except Exception:
            log.exception("compaction of a log failed; continuing with the next log")
            self._steps = None
            self._start_next()
        else:
            self._disk.submit(work, self._continue)

    def _clean(self, partition: Partition, opened: Log, plan: CleaningPlan) -> Steps:
        """Yield the steps of compacting a log, in as many passes as its keys need."""
        from ottla.storage.cleaning.log_cleaning import plan_log_compaction

        opened.cleaning = True
        self.current = partition, self._clock.monotonic()
        if self.events.active:
            self.events.publish(CleaningBegun(partition.topic_partition, plan.dirty_ratio, plan.dirty_bytes))
        try:
            while plan.dirty_bytes and not opened.closed:
                end_offset = yield from self._run_pass(partition, opened, plan)
                plan = plan_log_compaction(opened, end_offset, self._clock.wall_ms())
        except Exception as error:
            if not opened.closed and not isinstance(error, CleaningAbandoned):
                yield from self._abandon(partition, opened, error)
        else:
            opened.cleaning = False
            self._complained.discard(opened)
        finally:
            self.current = None

    def _abandon(self, partition: Partition, opened: Log, error: Exception) -> Steps:
        """Clean up after a failed compaction.

        After a disk error the compaction is tried again, after any other failure only when the broker restarts.
        """
        from ottla.storage.segments.swap import discard_swap

        retried = isinstance(error, OSError | KafkaError) and not isinstance(error, CorruptRecordError)
        putting_right = (
            partial(discard_swap, opened.directory) if self._exchange is None else self._exchange.carry_through
        )
        try:
            yield putting_right
            opened.cleaning = False
        except OSError:
            # The next start would replace other files by the ones that are left.
            self._unfinished[partition] = opened, putting_right
        if not retried:
            self._given_up.add(opened)
            log.error("%s is not compacted until the broker restarts: %s", partition.topic_partition, error)
        elif opened not in self._complained:
            self._complained.add(opened)
            log.error("%s could not be compacted, and is retried: %s", partition.topic_partition, error)

    def _run_pass(
        self, partition: Partition, opened: Log, plan: CleaningPlan
    ) -> Generator[Callable[[], None], None, int]:
        """Run one pass. Return the offset up to which the log is compacted."""
        from ottla.storage.cleaning.cleaner import Cleaner
        from ottla.storage.cleaning.key_map import KeyMap
        from ottla.storage.cleaning.log_cleaning import clean_in_steps, collect_transactions, find_extents

        began = self._clock.monotonic()
        keys = KeyMap(self._config.log_cleaner_dedupe_buffer_size, os.urandom(SEED_BYTES))
        cleaner = None
        try:
            cleaner = Cleaner(
                opened.directory,
                find_extents(opened, plan.upper_bound),
                plan,
                opened.config,
                keys=keys,
                now_ms=self._clock.wall_ms(),
                transactions=collect_transactions(opened, plan.upper_bound),
                breathe=lambda size: self._pause(opened),
            )
            yield from clean_in_steps(opened, cleaner)
        finally:
            self._exchange = None if cleaner is None else cleaner.exchange
            keys.close()
        if not opened.closed:
            yield self._directory.record_cleaned(partition.topic_partition, cleaner.end_offset)
            self._log_result(partition, cleaner, self._clock.monotonic() - began)
        return cleaner.end_offset

    def _log_result(self, partition: Partition, cleaner: Cleaner, seconds: float) -> None:
        before = sum(extent.size for extent in cleaner.extents)
        done = Compacted(partition.topic_partition, cleaner.end_offset, seconds, cleaner.bytes_written, before)
        log.info("%s", done)
        if self.events.active:
            self.events.publish(done)

    def _pause(self, opened: Log) -> None:
        if self._stopped or opened.closed:
            raise CleaningAbandoned
        time.sleep(PAUSE_SECONDS)
