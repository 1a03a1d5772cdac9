"""Folders of deleted logs: renamed, so that no partition has their name, then removed.

Removing gigabytes, or a thousand folders, takes time, and no request may wait for that: one thread adds folders, another removes
them. If a name is needed again earlier, its folder is renamed at once. The rule: a renamed folder is
removed, by the next start at the latest, and a folder is renamed as a whole or not at all.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Iterable
from pathlib import Path
from threading import Lock

from ottla.model import TopicPartition
from ottla.storage.files.durable import remove_tree, sync_path
from ottla.storage.segments.log_folder import is_of, rename_deleted, set_aside

LOG = logging.getLogger(__name__)


class Deletions:
    """The deletions of one data directory. All threads may call all methods."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._named: dict[TopicPartition, uuid.UUID | None] = {}
        """Partitions with folders that are not renamed yet, and their topic ids if they are known."""
        self._renamed: list[Path] = []
        self._releases: list[Callable[[], None]] = []
        self._lock = Lock()

    def add(
        self, partitions: Iterable[TopicPartition], topic_id: uuid.UUID | None, releases: Iterable[Callable[[], None]]
    ) -> None:
        """Have `remove` take these away, after it has let go of their files.

        A folder that says it is of another topic is set aside instead.
        """
        with self._lock:
            self._releases += releases
            self._named.update(dict.fromkeys(partitions, topic_id))

    def vacate(self, partitions: Iterable[TopicPartition]) -> None:
        """Make names free that are needed again; waits for one that is being renamed."""
        for partition in partitions:
            self._rename(partition)

    def remove(self) -> None:
        """Take away all that was added."""
        with self._lock:  # another thread may be at it, for another topic
            releases, self._releases = self._releases, []
        while releases:
            releases.pop()()
        while self._named:
            self._rename(None)
        with self._lock:
            renamed, self._renamed = self._renamed, []
        if renamed:
            self._sync()
        for folder in renamed:
            remove_tree(folder)

    def _rename(self, partition: TopicPartition | None) -> None:
        """Take its name from one folder, if it has it still; None: from any."""
        with self._lock:
            partition = next(iter(self._named), None) if partition is None else partition
            if partition is None or partition not in self._named:
                return
            topic_id = self._named.pop(partition)
            folder = self._path / str(partition)
            try:
                if not folder.is_dir():
                    return
                if topic_id is None or is_of(folder, topic_id):
                    self._renamed.append(rename_deleted(folder))
                else:
                    aside = set_aside(folder)
                    LOG.warning("%s is not of the topic that was deleted: renamed to %s", folder, aside)
            except OSError as error:
                LOG.error("%s is no more, but its files are: cannot rename %s: %s", partition, folder, error.strerror)

    def _sync(self) -> None:
        try:
            sync_path(self._path)
        except OSError as error:
            LOG.error("after a power cut folders in %s may have their names again: %s", self._path, error.strerror)
