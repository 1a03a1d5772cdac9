"""Delete the folders of logs: a folder is first renamed, so that its name is free, and removed later.

Removing gigabytes, or a thousand folders, takes time, and no request may wait for that: one thread adds folders, another removes
them. If a name is needed again before that, its folder is renamed at once. A rename is atomic, and the next start removes every renamed
folder that is left. So a crash leaves either the whole log or none of it.
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
        """Schedule the deletion of partitions by `remove`, after their files are closed.

        A folder that says it is of another topic is set aside instead.
        """
        with self._lock:
            self._releases += releases
            self._named.update(dict.fromkeys(partitions, topic_id))

    def free_names(self, partitions: Iterable[TopicPartition]) -> None:
        """Rename the folders of these partitions now, because their names are needed again. Waits for one that is being renamed."""
        for partition in partitions:
            self._rename(partition)

    def remove(self) -> None:
        """Delete all folders that were added."""
        with self._lock:  # another thread may be deleting another topic
            releases, self._releases = self._releases, []
        while releases:
            releases.pop()()
        while self._named:
            self._rename(None)
        with self._lock:
            renamed, self._renamed = self._renamed, []
        if renamed:
            self._sync_folder()
        for folder in renamed:
            remove_tree(folder)

    def _rename(self, partition: TopicPartition | None) -> None:
        """Rename the folder of a partition that was added and not renamed yet; with None, that of any such partition."""
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

    def _sync_folder(self) -> None:
        try:
            sync_path(self._path)
        except OSError as error:
            LOG.error("after a power cut folders in %s may have their names again: %s", self._path, error.strerror)
