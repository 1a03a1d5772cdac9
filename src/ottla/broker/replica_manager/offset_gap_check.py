"""The check for logs that lack offsets between their segments, once after a start, on a disk thread."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path

from ottla.broker.event_loop.disk import Disk
from ottla.broker.replica_manager.partition import Partition
from ottla.errors import KafkaError
from ottla.model import TopicPartition
from ottla.storage.directory.data_directories import DataDirectories
from ottla.storage.directory.data_directory import DataDirectory
from ottla.storage.recovery.lost_offsets import read_lost
from ottla.storage.segments.gaps import missing_offsets

log = logging.getLogger(__name__)
AT_ONCE = 32
"""The number of folders per step."""


class OffsetGapCheck:
    """Checks the logs that were present at the start."""

    def __init__(self, directory: DataDirectory | DataDirectories, disk: Disk) -> None:
        self._directory = directory
        self._disk = disk
        self._left: Iterator[TopicPartition] = iter(())

    def start(self, partitions: Iterable[Partition]) -> None:
        """Start the check in the background."""
        self._left = iter([each.topic_partition for each in partitions])
        self._check_next(None)

    def stop(self) -> None:
        """Stop after the logs that are being checked."""
        self._left = iter(())

    def _check_next(self, error: BaseException | None) -> None:
        if error is not None:
            log.debug("cannot check segments for missing offsets: %s", error)
        if names := list(islice(self._left, AT_ONCE)):
            folders = [folder for name in names if (folder := self._find_folder(name)) is not None]
            self._disk.submit(partial(log_missing_folders, folders), self._check_next)

    def _find_folder(self, name: TopicPartition) -> Path | None:
        """Return the folder of a log that was never compacted, or None. Called in the loop only."""
        try:
            home = self._directory.find_directory(name)
            return home.folder(name) if home is not None and not home.cleaned_to(name) else None
        except Exception:
            log.exception("the check for missing offsets failed partition=%s", name)
            return None


def log_missing_folders(folders: Iterable[Path]) -> None:
    """Log the gaps of each folder that exists."""
    for folder in folders:
        try:
            for missing in missing_offsets(folder, read_lost(folder)):
                log.error("%s: %s", missing.file, missing.reason)
        except (OSError, KafkaError):
            pass  # It was deleted meanwhile, is on an offline disk, or is reported when it is opened.
