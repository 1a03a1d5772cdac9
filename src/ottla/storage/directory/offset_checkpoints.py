"""How far each log of a data directory is flushed, and where it begins: two of Kafka's checkpoint files.

The partitions belong to the thread of the logs; the files may be written in another, and an older state of them is
never put in the place of a newer one.
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
        """`path` is the data directory; OSError where it cannot be read."""
        self.recovery_points = read_offsets(path / RECOVERY_POINTS)
        self.start_offsets = read_offsets(path / START_OFFSETS)
        self._of_all = self.recovery_points.keys() <= self.start_offsets.keys()
        self._path = path
        self._tells = bool(self.start_offsets) or is_text(path / START_OFFSETS, format_rows(()))
        """True if there is a complete file of log starts, so that a log without an entry was created after it."""
        self._checkpointed = {*self.recovery_points, *self.start_offsets}
        """Partitions of which the files may tell."""
        self._starts: dict[TopicPartition, int] | None = None
        """The log starts that were last written."""
        self._turns = 0
        self._written = 0
        self._behind = False
        """True if the files may be ahead of the state here after a failed write."""
        self._lock = Lock()

    def note(self, partition: TopicPartition, log: Log) -> None:
        """Take up what an open log says of itself."""
        self.recovery_points[partition] = log.recovery_point
        self.start_offsets[partition] = log.start_offset

    def note_closed(self, logs: Mapping[TopicPartition, Log]) -> None:
        """The same for those of these that are closed."""
        for partition, log in logs.items():
            if log.closed:
                self.note(partition, log)

    def noted_start(self, partition: TopicPartition) -> int | None:
        """Return an offset at which a log certainly started when the files were written, or was created; None if that is unknown.

        Kafka's file only has logs with deleted records, and may have an offset that is too low: its entries do not cover other logs.
        """
        return self.start_offsets.get(partition, 0 if self._tells else None) if self._of_all else None

    def doubt(self, partition: TopicPartition, log: Log) -> str:
        """Return why the start offset in the file is probably wrong: no record after the log's end can be deleted. Empty if it may be right."""
        noted = self.start_offsets.get(partition, 0)
        if noted <= log.end_offset:
            return ""
        return (
            f"{self._path / START_OFFSETS} has {partition} begin at offset {noted}, and its log ends at {log.end_offset}: "
            f"by that all its records were deleted"
        )

    def begin(self) -> None:
        """In a directory without logs: have files that tell of none, so that it is known of each that it was made later.

        They are not forced to the disk: where a loss of power takes them, less is known.
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

    def lower(self, partition: TopicPartition, offset: int) -> bool:
        """Tell of nothing from an offset on; whether the files may tell of any of it."""
        noted = self._behind
        for offsets in (self.recovery_points, self.start_offsets):
            if offsets.get(partition, 0) > offset:
                offsets[partition], noted = offset, True
        return noted

    def begin_anew(self, partitions: Iterable[TopicPartition]) -> None:
        """Before logs are made: let the files not tell of those that had these names, or they would hide records."""
        stale = False
        for partition in partitions:
            self.remove(partition)
            stale = stale or partition in self._checkpointed
        if stale:
            self.writing()()
            self._checkpointed = {*self.recovery_points, *self.start_offsets}

    def writing(self) -> Callable[[], None]:
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
    """True if a file exists and has exactly that text."""
    try:
        return read_whole(path) == text.encode()
    except OSError:
        return False
