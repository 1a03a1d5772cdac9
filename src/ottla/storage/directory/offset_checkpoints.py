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
from ottla.storage.files.checkpoint import read_offsets, text_of, write_offsets
from ottla.storage.files.regular_file import read_whole
from ottla.storage.files.storage_error import storage_error
from ottla.storage.log import Log

RECOVERY_POINTS = "recovery-point-offset-checkpoint"
START_OFFSETS = "log-start-offset-checkpoint"
WITHOUT = "move that file away: logs then begin with their first segments"


class OffsetCheckpoints:
    """Of all partitions, opened in this run or not."""

    def __init__(self, path: Path) -> None:
        """`path` is the data directory; OSError where it cannot be read."""
        self.recovery_points = read_offsets(path / RECOVERY_POINTS)
        self.start_offsets = read_offsets(path / START_OFFSETS)
        self._of_all = self.recovery_points.keys() <= self.start_offsets.keys()
        self._path = path
        self._tells = bool(self.start_offsets) or is_text(path / START_OFFSETS, text_of(()))
        """Whether there is a whole file of where logs begin, so that one that it does not tell of was made since."""
        self._checkpointed = {*self.recovery_points, *self.start_offsets}
        """Partitions of which the files may tell."""
        self._starts: dict[TopicPartition, int] | None = None
        """What was written last of where logs begin."""
        self._turns = 0
        self._written = 0
        self._behind = False
        """Whether the files may tell of more than is known here, as they could not be written last."""
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
        """Where a log is sure to have begun when the files were written, or was made; None where they do not tell that.

        Kafka tells only of logs from which records were deleted, and of those it may tell too late: its file is without others.
        """
        return self.start_offsets.get(partition, 0 if self._tells else None) if self._of_all else None

    def doubt(self, partition: TopicPartition, log: Log) -> str:
        """Why a log hardly begins where the file says: beyond its end nobody can have deleted anything. Empty where it may."""
        told = self.start_offsets.get(partition, 0)
        if told <= log.end_offset:
            return ""
        return (
            f"{self._path / START_OFFSETS} has {partition} begin at offset {told}, and its log ends at {log.end_offset}: "
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
        told = self._behind
        for offsets in (self.recovery_points, self.start_offsets):
            if offsets.get(partition, 0) > offset:
                offsets[partition], told = offset, True
        return told

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
        """What writes down the state as it is now, in any thread; KafkaError(KAFKA_STORAGE_ERROR) where it cannot."""
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
    """Whether a file is there and has just that text."""
    try:
        return read_whole(path) == text.encode()
    except OSError:
        return False
