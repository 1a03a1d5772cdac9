"""Failures of log directories while the broker runs: the directory's partitions go offline, all others are served.

    an append, a flush, a read, a copy, a checkpoint fails ──┐
                                                             ├──► offline ──► logged ──► waiting requests ──► the controllers
    every half second: present, and not read-only? ──────────┘

A full directory has not failed: it accepts records again when there is space. Without the directory of the metadata, or
without any directory, the broker stops. A broker with one directory continues to read, unless it is in a cluster, where
other brokers then lead.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from uuid import UUID

from ottla.broker.event_loop.disk import Disk
from ottla.broker.event_loop.timers import Timers, repeat
from ottla.broker.metadata.metadata_log import METADATA_PARTITION
from ottla.broker.replica_manager.fetch_purgatory import FetchPurgatory
from ottla.broker.replica_manager.partition import Partition
from ottla.broker.replica_manager.partitions import Partitions
from ottla.clock import Clock
from ottla.errors import OttlaError
from ottla.storage.batches.damage import OfflineError
from ottla.storage.directory.data_directories import REMEDY, DataDirectories
from ottla.storage.directory.data_directory import DataDirectory

log = logging.getLogger(__name__)
PLACE_SECONDS = 0.5
"""The interval between two checks that directories are present."""


class LogDirFailures:
    """Watches all directories of a broker. Called in the loop."""

    def __init__(
        self,
        directory: DataDirectory | DataDirectories,
        partitions: Partitions,
        waiting: FetchPurgatory,
        on_offline: Callable[[UUID, Sequence[Partition]], None],
        timers: Timers,
        clock: Clock,
        disk: Disk,
        *,
        stops_with_the_only_one: bool,
    ) -> None:
        """`on_offline` is called with a failed directory and its partitions.

        `stops_with_the_only_one` is True if a broker with a single directory stops when it has failed, since other brokers
        can serve its partitions.
        """
        self._stops_with_the_only_one = stops_with_the_only_one
        self._on_offline = on_offline
        self._directory = directory
        self._partitions = partitions
        self._waiting = waiting
        self._timers = timers
        self._clock = clock
        self._disk = disk
        self._fail: Callable[[OttlaError], None] = lambda error: None
        self._failing: set[DataDirectory] = set()

    def start(self, fail: Callable[[OttlaError], None]) -> None:
        """Start the checks. `fail` stops the broker."""
        self._fail = fail
        repeat(
            self._timers,
            self._clock,
            "data directories",
            self._check_directories,
            lambda: PLACE_SECONDS,
            first_seconds=0,
        )

    def report_error(self, error: BaseException | None, partition: Partition | None) -> None:
        """Check after a file error whether the whole directory has failed. The check runs after the current request."""
        name = None if partition is None else partition.topic_partition
        found = self._directory.find_failed_directory(error, name)
        if found is not None:
            self._schedule_offline(found, str(error))

    def _schedule_offline(self, directory: DataDirectory, why: str) -> None:
        if directory not in self._failing:
            self._failing.add(directory)
            self._timers.schedule(self._clock.monotonic(), lambda: self._handle_failure(directory, why))

    def _check_directories(self) -> None:
        try:
            self._directory.ensure_in_place(METADATA_PARTITION)
        except OttlaError as error:
            self._fail(error)
            return
        if isinstance(self._directory, DataDirectories):
            for each in list(self._directory.online()):
                try:
                    each.ensure_healthy()
                except (OttlaError, OSError) as error:
                    self._schedule_offline(each, str(error))

    def _handle_failure(self, directory: DataDirectory, why: str) -> None:
        several = self._directory
        if not isinstance(several, DataDirectories):
            if self._stops_with_the_only_one:
                self._fail(OttlaError(f"the broker stops: the data directory {directory.path} has failed: {why}"))
            return
        if directory is several.main or list(several.online()) == [directory]:
            which = "has the metadata" if directory is several.main else "is the last one"
            self._fail(
                OttlaError(
                    f"the broker stops: log directory {directory.path} has failed, and it {which}: {why}; {REMEDY}"
                )
            )
            return
        names, let_go = several.fail(directory, why)
        found = [each for name in names if (each := self._partitions.find(*name)) is not None]
        log.error(
            "log directory %s is offline: %s; its %d partitions are offline, all others are served; %s",
            directory.path, why, len(found), REMEDY,
        )  # fmt: skip
        self._take_offline(directory, found)
        self._disk.submit(let_go, ignore_error)

    def _take_offline(self, directory: DataDirectory, partitions: Sequence[Partition]) -> None:
        for each in partitions:
            each.take_offline(
                OfflineError(f"{each.topic_partition} is in {directory.path}, which is offline: {REMEDY}")
            )
        self._on_offline(directory.directory_id, partitions)
        self._waiting.recheck(partitions)


def ignore_error(error: BaseException | None) -> None:
    """Ignore whether the files of a failed disk could be closed."""
