"""The recovery point and the start offset of each log of a data directory: two of Kafka's checkpoint files.

The offsets in memory belong to the thread of the logs. The files may be written in another thread; an older state never replaces a
newer one.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from threading import Lock

from ottla.model import TopicPartition
from ottla.storage.files.checkpoint import format_rows, read_offsets, write_offsets
from ottla.storage.files.regular_file import read_whole
from ottla.storage.files.storage_error import storage_error
from ottla.storage.log import Log

RECOVERY_POINTS = "recovery-point-offset-checkpoint"
START_OFFSETS = "log-start-offset-checkpoint"
WITHOUT = "move that file away: logs then begin with their first segments"


class OffsetCheckpoints:
    """The checkpoints of all partitions, open or not."""

    def __init__(self, path: Path) -> None:
        """`path` is the data directory. Raises OSError if it cannot be read."""
        self.recovery_points = read_offsets(path / RECOVERY_POINTS)
        self.start_offsets = read_offsets(path / START_OFFSETS)
        self._of_all = self.recovery_points.keys() <= self.start_offsets.keys()
        self._path = path
        self._has_all_starts = bool(self.start_offsets) or is_text(path / START_OFFSETS, format_rows(()))
        """True if there is a complete file of log starts, so that a log without an entry was created after it."""
        self._checkpointed = {*self.recovery_points, *self.start_offsets}
        """Partitions that the files may contain."""
        self._starts: dict[TopicPartition, int] | None = None
        """The log starts that were last written."""
        self._turns = 0
        self._written = 0
        self._behind = False
        """True if the files may be ahead of the state here after a failed write."""
        self._lock = Lock()

    def record_log(self, partition: TopicPartition, log: Log) -> None:
        """Record the recovery point and the start offset of an open log."""
        self.recovery_points[partition] = log.recovery_point
        self.start_offsets[partition] = log.start_offset

    def record_closed_logs(self, logs: Mapping[TopicPartition, Log]) -> None:
        """Record the offsets of those of these logs that are closed."""
        for partition, log in logs.items():
            if log.closed:
                self.record_log(partition, log)

    def find_start(self, partition: TopicPartition) -> int | None:
        """Return an offset at which a log certainly started earlier: that in the file, or 0 if the log was created later; None if unknown.

        It is unknown if Kafka wrote the file: Kafka lists only logs with deleted records, so a missing entry has no meaning.
        """
        return self.start_offsets.get(partition, 0 if self._has_all_starts else None) if self._of_all else None

    def find_doubt(self, partition: TopicPartition, log: Log) -> str:
        """Return why the start offset in the file is probably wrong: it is above the log's end. Return an empty text if it may be right."""
        noted = self.start_offsets.get(partition, 0)
        if noted <= log.end_offset:
            return ""
        return (
            f"{self._path / START_OFFSETS} has {partition} begin at offset {noted}, and its log ends at {log.end_offset}: "
            f"by that all its records were deleted"
        )

    def create_files(self) -> None:
        """Create empty files in a directory without logs, so that later logs are known to be newer.

        They are not forced to the disk. If a power failure loses them, a missing first segment is not detected (`find_start`).
        """
        try:
            for name in (START_OFFSETS, RECOVERY_POINTS):
                if not (self._path / name).exists():
                    write_offsets(self._path / name, {}, sync=False)
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise  # A full disk must not keep a broker from starting.

    def remove(self, partition: TopicPartition) -> None:
        self.recovery_points.pop(partition, None)
        self.start_offsets.pop(partition, None)

    def lower_offsets(self, partition: TopicPartition, offset: int) -> bool:
        """Lower the entries of a partition to an offset. Return True if the files may contain a higher one."""
        noted = self._behind
        for offsets in (self.recovery_points, self.start_offsets):
            if offsets.get(partition, 0) > offset:
                offsets[partition], noted = offset, True
        return noted

    def forget_partitions(self, partitions: Iterable[TopicPartition]) -> None:
        """Remove the entries of deleted logs before new logs get the same names: an old start offset would hide new records."""
        stale = False
        for partition in partitions:
            self.remove(partition)
            stale = stale or partition in self._checkpointed
        if stale:
            self.prepare_write()()
            self._checkpointed = {*self.recovery_points, *self.start_offsets}

    def prepare_write(self) -> Callable[[], None]:
        """Return a function that writes the current state, in any thread; it raises KafkaError(KAFKA_STORAGE_ERROR) if that fails."""
        self._turns += 1
        turn, points, starts = self._turns, dict(self.recovery_points), dict(self.start_offsets)
        self._checkpointed |= {*points, *starts}

        def write() -> None:
            with self._lock:
                if turn <= self._written:
                    return
                try:
                    if starts != self._starts:
                        write_offsets(self._path / START_OFFSETS, starts)
                        self._starts = starts
                    write_offsets(self._path / RECOVERY_POINTS, points)
                except OSError as error:
                    self._behind = True
                    raise storage_error(f"cannot write checkpoints in {self._path}", error) from error
                self._written, self._behind = turn, False

        return write


def is_text(path: Path, text: str) -> bool:
    """Return True if a file exists and has exactly that text."""
    try:
        return read_whole(path) == text.encode()
    except OSError:
        return False
