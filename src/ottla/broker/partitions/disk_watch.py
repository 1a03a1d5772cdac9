"""What becomes of a directory that fails while the broker runs: its partitions go offline, the others are served on.

    an append, a flush, a read, a copy, a checkpoint fails ──┐
                                                             ├──► offline ──► said once ──► who waits ──► the controllers
    every half second: there, and not read-only? ────────────┘

One that is full has not failed: it takes records again when there is room. Without the directory of the metadata, or the last one, there
is nothing to serve, and the broker stops; with one directory it goes on reading, unless it is of a cluster, where others lead then.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from uuid import UUID

from ottla.broker.disk import Disk
from ottla.broker.fetching.waiting import Waiting
from ottla.broker.partitions.partition import Partition
from ottla.broker.partitions.partitions import METADATA_PARTITION, Partitions
from ottla.broker.timers import Timers, repeat
from ottla.clock import Clock
from ottla.errors import KafkaError, OttlaError
from ottla.storage.batches.damage import OfflineError
from ottla.storage.directory.data_directories import REMEDY, DataDirectories
from ottla.storage.directory.data_directory import DataDirectory

log = logging.getLogger(__name__)
PLACE_SECONDS = 0.5
"""How often to look whether directories are still there."""


class DiskWatch:
    """Of all directories of a broker. Called in the loop."""

    def __init__(
        self,
        directory: DataDirectory | DataDirectories,
        partitions: Partitions,
        waiting: Waiting,
        lost: Callable[[Partition], None],
        timers: Timers,
        clock: Clock,
        disk: Disk,
    ) -> None:
        """`lost` is told of each partition that goes offline: who coordinated by it does so no more."""
        self.stops_with_the_only_one = False
        """Whether a broker with one directory ends when that has failed: others can serve what it has."""
        self.on_offline: Callable[[UUID, Sequence[Partition]], None] = lambda directory, partitions: None
        """Told of a directory that has failed, and what it had."""
        self._directory = directory
        self._partitions = partitions
        self._waiting = waiting
        self._lost = lost
        self._timers = timers
        self._clock = clock
        self._disk = disk
        self._fail: Callable[[OttlaError], None] = lambda error: None
        self._failing: set[DataDirectory] = set()

    def begin(self, fail: Callable[[OttlaError], None]) -> None:
        """Look from now on; `fail` stops the broker."""
        self._fail = fail
        repeat(self._timers, self._clock, "data directories", self._look, lambda: PLACE_SECONDS, first_seconds=0)

    def suspect(self, error: BaseException | None, partition: Partition | None) -> None:
        """Something could not be done with files: see whether the whole directory is to be given up, when this request is over."""
        name = None if partition is None else partition.topic_partition
        found = self._directory.sick(error, name)
        if found is not None:
            self._give_up_soon(found, str(error))

    def _give_up_soon(self, directory: DataDirectory, why: str) -> None:
        if directory not in self._failing:
            self._failing.add(directory)
            self._timers.at(self._clock.monotonic(), lambda: self._give_up(directory, why))

    def _look(self) -> None:
        try:
            self._directory.ensure_in_place(METADATA_PARTITION)
        except OttlaError as error:
            self._fail(error)
            return
        if isinstance(self._directory, DataDirectories):
            for each in list(self._directory.online()):
                try:
                    each.ensure_well()
                except (OttlaError, OSError) as error:
                    self._give_up_soon(each, str(error))

    def _give_up(self, directory: DataDirectory, why: str) -> None:
        several = self._directory
        if not isinstance(several, DataDirectories):
            if self.stops_with_the_only_one:
                self._fail(OttlaError(f"the data directory {directory.path} has failed, and the broker stops: {why}"))
            return
        if directory is several.main or list(several.online()) == [directory]:
            which = "has the metadata" if directory is several.main else "is the last one"
            self._fail(
                OttlaError(f"log directory {directory.path} has failed, and {which}: the broker stops: {why}; {REMEDY}")
            )
            return
        names, let_go = several.fail(directory, why)
        found = [each for name in names if (each := self._partitions.find(*name)) is not None]
        log.error(
            "log directory %s is offline: %s; its partitions, %d, are out of service, and the others are served: %s",
            directory.path, why, len(found), REMEDY,
        )  # fmt: skip
        self._take_offline(directory, found)
        self._disk.submit(let_go, ignore)

    def _take_offline(self, directory: DataDirectory, partitions: Sequence[Partition]) -> None:
        for each in partitions:
            each.take_offline(
                OfflineError(f"{each.topic_partition} is in {directory.path}, which is offline: {REMEDY}")
            )
            try:
                self._lost(each)
            except KafkaError as error:
                log.error("%s: %s", each.topic_partition, error)
        self.on_offline(directory.directory_id, partitions)
        self._waiting.look_again(partitions)


def ignore(error: BaseException | None) -> None:
    """Whether a failed disk's files could be closed."""
