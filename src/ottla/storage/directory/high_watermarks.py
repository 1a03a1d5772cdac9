"""The checkpointed high watermarks of a data directory: Kafka's `replication-offset-checkpoint`.

The file may be outdated, but is never ahead: a start uses it as a lower bound of what is committed, and gets the rest from other
replicas. So it is not forced to the disk. A damaged file is logged and rewritten; until then nothing is known to be committed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from threading import Lock

from ottla.model import TopicPartition
from ottla.storage.files.checkpoint import read_offsets, write_offsets
from ottla.storage.files.storage_error import storage_error
from ottla.storage.log import Log

HIGH_WATERMARKS = "replication-offset-checkpoint"


class HighWatermarks:
    """The high watermarks of all partitions, open or not. Belongs to the thread of the logs; the file may be written in another."""

    def __init__(self, path: Path) -> None:
        """`path` is the data directory; OSError where it cannot be read."""
        self._path = path / HIGH_WATERMARKS
        self._offsets = read_offsets(self._path)
        self._saved: dict[TopicPartition, int] | None = dict(self._offsets)
        """The content of the file; None if it is unknown after a failed write."""
        self._turns = 0
        self._written = 0
        self._lock = Lock()

    def get(self, partition: TopicPartition) -> int:
        """Up to where a log was committed; 0 where nothing is known."""
        return self._offsets.get(partition, 0)

    def remove(self, partition: TopicPartition) -> None:
        self._offsets.pop(partition, None)

    def lower(self, partition: TopicPartition, offset: int) -> None:
        """Before a log is cut: let the file tell of nothing from an offset on, which may soon be another's."""
        known, saved = self._offsets.get(partition, 0), self._saved
        if known > offset:
            self._offsets[partition] = offset
        if saved is None or max(known, saved.get(partition, 0)) > offset:
            self._write_now()

    def begin_anew(self, partitions: Sequence[TopicPartition]) -> None:
        """Before logs are made: let the file not tell of those that had these names."""
        for partition in partitions:
            self.remove(partition)
        if self._saved is None or not self._saved.keys().isdisjoint(partitions):
            self._write_now()

    def _write_now(self) -> None:
        writing = self.writing({})
        if writing is not None:
            writing()

    def writing(self, logs: Mapping[TopicPartition, Log]) -> Callable[[], None] | None:
        """Return a function that writes the current high watermarks, in any thread; None if they have not changed."""
        self._offsets |= {partition: log.high_watermark for partition, log in logs.items()}
        if self._offsets == self._saved:
            return None
        self._turns += 1
        turn, offsets = self._turns, dict(self._offsets)
        self._saved = offsets

        def write() -> None:
            with self._lock:
                if turn > self._written:
                    self._write(offsets)
                    self._written = turn

        return write

    def _write(self, offsets: Mapping[TopicPartition, int]) -> None:
        try:
            write_offsets(self._path, offsets, sync=False)
        except OSError as error:
            self._saved = None
            raise storage_error(f"cannot write {self._path}", error) from error
