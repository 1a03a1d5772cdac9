"""Copies of partitions that are being moved into a data directory: Kafka's future logs, `<topic>-<partition>.<id>-future`.

A start never uses such a folder as the partition's log: until it is renamed, the log in the source directory is the valid one. To a start the
folder only means that the partition is to be moved here. Its content is dropped and copied again from the beginning, because after
a crash of the machine the copy and the source may have different ends.
"""

from __future__ import annotations

import errno
import re
import uuid
from collections.abc import Callable
from pathlib import Path

from ottla.model import TopicPartition
from ottla.storage.files.durable import remove_tree, sync_path
from ottla.storage.files.storage_error import storage_error
from ottla.storage.log import Log
from ottla.storage.log_config import LogConfig
from ottla.storage.segments.log_folder import NAME_BYTES, partition_of, write_topic_id

FUTURE_NAME = re.compile(r"(.+-\d+)\.[0-9a-f]{32}-future")


class FutureLogs:
    """The future logs of one data directory. Belongs to the thread of the logs."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._folders: dict[TopicPartition, Path] = {}
        self._logs: dict[TopicPartition, Log] = {}

    def __contains__(self, partition: TopicPartition) -> bool:
        return partition in self._folders

    def find(self) -> None:
        """Find the folders of the last run; OSError if they cannot be read. If there are two for one partition, one is deleted."""
        for folder in sorted(self._path.glob("*-future")):
            match = FUTURE_NAME.fullmatch(folder.name)
            partition = partition_of(match[1]) if match else None
            if partition is not None and partition in self._folders:
                rename_for_removal(folder, partition)()
            elif partition is not None:
                self._folders[partition] = folder

    @property
    def partitions(self) -> list[TopicPartition]:
        return list(self._folders)

    @property
    def logs(self) -> list[Log]:
        """The logs that were opened in this run; others are folders only."""
        return list(self._logs.values())

    def create_folder(self, partition: TopicPartition) -> None:
        """Create the folder durably. Raises KafkaError(KAFKA_STORAGE_ERROR) if that fails."""
        if partition in self._folders:
            return
        folder = self._path / future_name(partition)
        try:
            folder.mkdir()
            sync_path(self._path)
        except OSError as error:
            raise storage_error(f"cannot make {folder}", error) from error
        self._folders[partition] = folder

    def open(
        self, partition: TopicPartition, topic_id: uuid.UUID, config: LogConfig, *, start_offset: int, now_ms: int
    ) -> Log:
        """Return the log in the folder. It is empty and starts at `start_offset` if it is opened for the first time in this run, or was closed."""
        log = self._logs.get(partition)
        if log is None or log.closed:
            old = self._folders.pop(partition, None)
            self.create_folder(partition)  # created first, so that a crash in between does not lose the requested move
            rename_for_removal(old, partition)()
            folder = self._folders[partition]
            log = Log.open(folder, config, now_ms=now_ms, clean=True, start_offset=start_offset)
            try:
                write_topic_id(folder, topic_id)
            except OSError as error:
                raise storage_error(f"cannot write the topic's id into {folder}", error) from error
            self._logs[partition] = log
        return log

    def promote_folder(self, partition: TopicPartition) -> Path:
        """Rename the folder to the name of its partition, durably; the log is closed. Raises OSError if that fails."""
        target = self._path / str(partition)
        if target.exists():  # a rename would silently replace an empty folder
            raise FileExistsError(errno.EEXIST, "it is there already", str(target))
        self._folders[partition].rename(target)
        del self._folders[partition], self._logs[partition]
        sync_path(self._path)
        return target

    def close_log(self, partition: TopicPartition) -> None:
        """Close the log, and keep its folder."""
        log = self._logs.pop(partition, None)
        self._folders.pop(partition, None)
        if log is not None:
            log.closed = True
            log.release()

    def remove_folder(self, partition: TopicPartition) -> Callable[[], None]:
        """Rename the folder and return a function that removes it, callable in any thread; KafkaError(KAFKA_STORAGE_ERROR) if it fails."""
        folder = self._folders.get(partition)
        self.close_log(partition)
        return rename_for_removal(folder, partition)

    def release(self) -> None:
        """Close all files when the broker stops. The next start continues the moves by the folders."""
        for partition in list(self._logs):
            log = self._logs.pop(partition)
            log.closed = True
            log.release()


def future_name(partition: TopicPartition) -> str:
    return f"{partition}.{uuid.uuid4().hex}-future"


def is_too_long(partition: TopicPartition) -> bool:
    """Return True if a partition's name leaves no space for the suffix, so that the partition cannot be moved."""
    return len(future_name(partition)) > NAME_BYTES


def rename_for_removal(folder: Path | None, partition: TopicPartition) -> Callable[[], None]:
    """Rename a folder so that the next start removes it, and return the function that removes it earlier."""
    if folder is None or not folder.exists():
        return lambda: None
    doomed = folder.with_name(f"{partition}.{uuid.uuid4().hex}-delete")
    try:
        folder.rename(doomed)
    except OSError as error:
        raise storage_error(f"cannot remove {folder}", error) from error
    return lambda: remove_tree(doomed)
