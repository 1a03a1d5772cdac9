"""The checkpointed high watermarks of a data directory: Kafka's `replication-offset-checkpoint`.

The file may be too low, but never too high: a start uses it as a lower bound of the high watermark, and gets the exact value from other
replicas. So the file need not be forced to the disk. A damaged file is logged, counts as empty, and is replaced by the next write.
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
        """`path` is the data directory. Raises OSError if it cannot be read."""
        self._path = path / HIGH_WATERMARKS
        self._offsets = read_offsets(self._path)
        self._saved: dict[TopicPartition, int] | None = dict(self._offsets)
        """The content of the file; None if it is unknown after a failed write."""
        self._turns = 0
        self._written = 0
        self._lock = Lock()

    def get(self, partition: TopicPartition) -> int:
        """Return the high watermark of a log; 0 if it is unknown."""
        return self._offsets.get(partition, 0)

    def remove(self, partition: TopicPartition) -> None:
        self._offsets.pop(partition, None)

    def lower_offset(self, partition: TopicPartition, offset: int) -> None:
        """Lower the stored high watermark to an offset, before the log is truncated there and may get other records."""
        known, saved = self._offsets.get(partition, 0), self._saved
        if known > offset:
            self._offsets[partition] = offset
        if saved is None or max(known, saved.get(partition, 0)) > offset:
            self._write_now()

    def forget_partitions(self, partitions: Sequence[TopicPartition]) -> None:
        """Remove the entries of deleted logs with these names, before new ones are created."""
        for partition in partitions:
            self.remove(partition)
        if self._saved is None or not self._saved.keys().isdisjoint(partitions):
            self._write_now()

    def _write_now(self) -> None:
        writing = self.prepare_write({})
        if writing is not None:
            writing()

    def prepare_write(self, logs: Mapping[TopicPartition, Log]) -> Callable[[], None] | None:
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
