"""Compaction as a chore: looks from time to time which logs are worth it and works on one after the other.

The work is done in a thread of the disk's, which pauses often, since it shares the interpreter with the loop; what
changes a log is done in the loop, in between. The log that has most to gain comes first.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Generator, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from ottla.broker.disk import Disk
from ottla.broker.partitions.cleaning_events import CleaningBegun, Compacted
from ottla.broker.partitions.complaints import Complaints
from ottla.broker.partitions.partition import Partition
from ottla.broker.partitions.sweep import Sweep
from ottla.broker.settings.config import BrokerConfig
from ottla.broker.timers import Timers
from ottla.clock import Clock
from ottla.errors import CorruptRecordError, KafkaError
from ottla.storage.batches.damage import OutOfServiceError
from ottla.storage.directory.data_directories import DataDirectories
from ottla.storage.directory.data_directory import DataDirectory
from ottla.storage.log import Log
from ottla.trace import EventStream

if TYPE_CHECKING:
    from ottla.storage.cleaning.cleaner import Cleaner
    from ottla.storage.cleaning.cleaning_plan import CleaningPlan
    from ottla.storage.segments.swap import Exchange

log = logging.getLogger(__name__)
PAUSE_SECONDS = 0.0002
"""What the thread leaves to the loop after each piece of work, which is some tenths of a millisecond."""
SEED_BYTES = 16
Steps = Generator[Callable[[], None], None, None]


class GivenUp(Exception):
    """The work has become pointless: the topic is deleted, or the broker stops."""


class Cleaning:
    """The logs that are to be compacted, and the one that is."""

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
        self._sweep = Sweep(timers, clock, self._consider)
        self._due: dict[Partition, float] = {}
        """Partitions and the share of them that was not compacted before."""
        self._steps: Steps | None = None
        self._exchange: Exchange | None = None
        """What the last failure left half done: files that were being put in the place of others, and must stay."""
        self._unfinished: dict[Partition, tuple[Log, Callable[[], None]]] = {}
        """What a disk refused, and must be done before anything else is with these logs' files."""
        self._finish_due = False
        self._stopped = False
        self.current: tuple[Partition, float] | None = None
        """What is being compacted, and since when by the monotonic clock."""
        self.looked_at: dict[Partition, float] = {}
        """The share that was not compacted of each log, when it was last looked at."""
        self.events = EventStream()
        """What is begun and done."""
        self._given_up: set[Log] = set()
        """Logs that are left alone until the broker starts again, since something is wrong with them."""
        self._complaints = Complaints(clock)
        self._complained: set[Log] = set()
        """Logs for which the disk had no room when last tried."""

    def configure(self, config: BrokerConfig) -> None:
        """Take other settings, from the next pass on."""
        self._config = config

    @property
    def due(self) -> Mapping[Partition, float]:
        """What is to be compacted, and the share of each that was not before."""
        return self._due

    def look(self, partitions: Iterable[Partition]) -> None:
        """See which of them are worth it, and begin unless a log is under way."""
        self._finish_due = True
        for gone in [each for each in self.looked_at if each.opened_log is None or each.opened_log.closed]:
            del self.looked_at[gone]
        self._next()
        self._sweep.begin(partitions)

    def stop(self) -> None:
        """Begin nothing more, and let what is under way end soon; what it leaves is put right at the next start."""
        self._stopped = True

    def _consider(self, partition: Partition) -> None:
        try:
            plan = self._plan(partition)
        except OutOfServiceError:
            return  # as was said
        except KafkaError as error:
            self._complaints.tell(str(error))
            return
        if plan is not None:
            self._due[partition] = plan.dirty_ratio
            self._next()

    def _plan(self, partition: Partition) -> CleaningPlan | None:
        """What to compact of a partition; None where it is not worth it."""
        if partition.opened_log is None and not self._directory.folder(partition.topic_partition).is_dir():
            return None
        opened = partition.log
        if opened.closed or opened.cleaning or len(opened.bases) == 1 or opened in self._given_up:
            return None
        from ottla.storage.cleaning.log_cleaning import plan_of  # when there is something to compact, not at the start

        done = self._directory.cleaned_to(partition.topic_partition)
        plan = plan_of(opened, done, self._clock.wall_ms())
        self.looked_at[partition] = plan.dirty_ratio
        return plan if plan.due(opened.config) and opened.config.compacts else None

    def _next(self) -> None:
        """Finish what a disk refused before, then begin with the log that has most to gain."""
        if self._unfinished and self._finish_due and self._steps is None and not self._stopped:
            self._finish_due = False
            self._steps = self._finish(dict(self._unfinished))
            self._go_on(None)
        while self._due and self._steps is None and not self._stopped:
            partition = max(self._due, key=self._due.__getitem__)
            del self._due[partition]
            plan = self._plan(partition)
            if plan is not None:
                self._steps = self._clean(partition, partition.log, plan)
                self._go_on(None)

    def _finish(self, unfinished: Mapping[Partition, tuple[Log, Callable[[], None]]]) -> Steps:
        """Put logs right where the disk lets us now; they have had neither compaction nor retention meanwhile."""
        for partition, (opened, work) in unfinished.items():
            try:
                if not opened.closed:
                    yield work
                    log.info("%s: its files are in order again", partition.topic_partition)
            except OSError as error:
                log.debug("%s: the disk refuses still: %s", partition.topic_partition, error)
                continue
            del self._unfinished[partition]
            opened.cleaning = False
            self._complained.discard(opened)

    def _go_on(self, error: BaseException | None) -> None:
        """Take the next step, once the one before has ended, with an error or without."""
        steps = self._steps
        assert steps is not None
        if self._stopped:
            steps.close()
            return
        try:
            work = next(steps) if error is None else steps.throw(error)
        except StopIteration:
            self._steps = None
            self._next()
        except Exception:
            log.exception("a compaction failed, and the next log is compacted")
            self._steps = None
            self._next()
        else:
            self._disk.submit(work, self._go_on)

    def _clean(self, partition: Partition, opened: Log, plan: CleaningPlan) -> Steps:
        """The steps of compacting a log, in as many passes as its keys take."""
        from ottla.storage.cleaning.log_cleaning import plan_of

        opened.cleaning = True
        self.current = partition, self._clock.monotonic()
        if self.events.active:
            self.events.tell(CleaningBegun(partition.topic_partition, plan.dirty_ratio, plan.dirty_bytes))
        try:
            while plan.dirty_bytes and not opened.closed:
                end_offset = yield from self._pass(partition, opened, plan)
                plan = plan_of(opened, end_offset, self._clock.wall_ms())
        except Exception as error:
            if not opened.closed and not isinstance(error, GivenUp):
                yield from self._leave(partition, opened, error)
        else:
            opened.cleaning = False
            self._complained.discard(opened)
        finally:
            self.current = None

    def _leave(self, partition: Partition, opened: Log, error: Exception) -> Steps:
        """Put a log right after a failure. Where its disk refused it is tried again, else only after a restart."""
        from ottla.storage.segments.swap import discard

        retried = isinstance(error, OSError | KafkaError) and not isinstance(error, CorruptRecordError)
        putting_right = partial(discard, opened.directory) if self._exchange is None else self._exchange.carry_through
        try:
            yield putting_right
            opened.cleaning = False
        except OSError:
            # What is left there would take the place of other files at the next start.
            self._unfinished[partition] = opened, putting_right
        if not retried:
            self._given_up.add(opened)
            log.error("%s is not compacted until the broker starts again: %s", partition.topic_partition, error)
        elif opened not in self._complained:
            self._complained.add(opened)
            log.error("%s could not be compacted, it is tried again: %s", partition.topic_partition, error)

    def _pass(self, partition: Partition, opened: Log, plan: CleaningPlan) -> Generator[Callable[[], None], None, int]:
        """One pass; up to where the log is compacted then."""
        from ottla.storage.cleaning.cleaner import Cleaner
        from ottla.storage.cleaning.key_map import KeyMap
        from ottla.storage.cleaning.log_cleaning import extents_of, steps, transactions_of

        began = self._clock.monotonic()
        keys = KeyMap(self._config.log_cleaner_dedupe_buffer_size, os.urandom(SEED_BYTES))
        cleaner = None
        try:
            cleaner = Cleaner(
                opened.directory,
                extents_of(opened, plan.upper_bound),
                plan,
                opened.config,
                keys=keys,
                now_ms=self._clock.wall_ms(),
                transactions=transactions_of(opened, plan.upper_bound),
                breathe=lambda size: self._breathe(opened),
            )
            yield from steps(opened, cleaner)
        finally:
            self._exchange = None if cleaner is None else cleaner.exchange
            keys.close()
        if not opened.closed:
            yield self._directory.note_cleaned(partition.topic_partition, cleaner.end_offset)
            self._tell(partition, cleaner, self._clock.monotonic() - began)
        return cleaner.end_offset

    def _tell(self, partition: Partition, cleaner: Cleaner, seconds: float) -> None:
        before = sum(extent.size for extent in cleaner.extents)
        done = Compacted(partition.topic_partition, cleaner.end_offset, seconds, cleaner.bytes_written, before)
        log.info("%s", done)
        if self.events.active:
            self.events.tell(done)

    def _breathe(self, opened: Log) -> None:
        if self._stopped or opened.closed:
            raise GivenUp
        time.sleep(PAUSE_SECONDS)
