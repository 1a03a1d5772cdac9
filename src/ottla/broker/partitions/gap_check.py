"""After a start: which logs lack offsets between their segments, told once, in a thread of the disk's.

Only logs that were never compacted are looked at, some at a time, so that a stop does not wait for all of them.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path

from ottla.broker.disk import Disk
from ottla.broker.partitions.partition import Partition
from ottla.errors import KafkaError
from ottla.model import TopicPartition
from ottla.storage.directory.data_directories import DataDirectories
from ottla.storage.directory.data_directory import DataDirectory
from ottla.storage.recovery.lost_offsets import read_lost
from ottla.storage.segments.gaps import missing_offsets

log = logging.getLogger(__name__)
AT_ONCE = 32
"""Folders that are looked at in one piece of work."""


class GapCheck:
    """One walk over the logs that a start found."""

    def __init__(self, directory: DataDirectory | DataDirectories, disk: Disk) -> None:
        self._directory = directory
        self._disk = disk
        self._left: Iterator[TopicPartition] = iter(())

    def begin(self, partitions: Iterable[Partition]) -> None:
        """Look at these; nothing else waits for it."""
        self._left = iter([each.topic_partition for each in partitions])
        self._go_on(None)

    def stop(self) -> None:
        """Look at no more than is being looked at."""
        self._left = iter(())

    def _go_on(self, error: BaseException | None) -> None:
        if error is not None:
            log.debug("segments could not be looked at: %s", error)
        if names := list(islice(self._left, AT_ONCE)):
            folders = [folder for name in names if (folder := self._folder(name)) is not None]
            self._disk.submit(partial(tell_missing, folders), self._go_on)

    def _folder(self, name: TopicPartition) -> Path | None:
        """The folder of a log that was never compacted; only the loop may ask for it."""
        try:
            home = self._directory.settled(name)
            return home.folder(name) if home is not None and not home.cleaned_to(name) else None
        except Exception:
            log.exception("gaps in a log are not looked for partition=%s", name)
            return None


def tell_missing(folders: Iterable[Path]) -> None:
    """Log the gaps in each that is there."""
    for folder in folders:
        try:
            for missing in missing_offsets(folder, read_lost(folder)):
                log.error("%s: %s", missing.file, missing.reason)
        except (OSError, KafkaError):
            pass  # It was deleted meanwhile, is on a disk that is not there, or is told of by whoever opens it.
