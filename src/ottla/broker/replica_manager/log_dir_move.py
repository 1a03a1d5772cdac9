"""The move of one replica to another directory: its future log is copied from the current one, and replaces it.

`coordination/replication/relocation.py` decides the next step. Errors of the current log end the move; errors of the
target directory are raised, to be retried.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from ottla.broker.replica_manager.partition import Partition
from ottla.coordination.replication.relocation import RelocationProgress, RelocationStep, next_step
from ottla.errors import CorruptRecordError, KafkaError
from ottla.model import INT32_MAX
from ottla.records.batch import iter_headers
from ottla.storage.directory.data_directory import DataDirectory
from ottla.storage.files.storage_error import storage_error
from ottla.storage.log import Log

PIECE_BYTES = 256 * 1024


class MoveAbandonedError(Exception):
    """A move ended early; the message is for the user."""


class Relocation:
    """The move of one partition. Belongs to the loop, except for `flush`."""

    def __init__(self, partition: Partition, home: DataDirectory) -> None:
        self.partition = partition
        self.home = home
        """The target directory, in which the future log is."""
        self.is_reported = False
        """True if the new directory was reported to the controllers."""
        self.forcing = False
        self.not_before = 0.0
        """The time of the next attempt after a failure, by the monotonic clock."""
        self.fault = ""
        self._future: Log | None = None
        self._source: Log | None = None
        self._cut_at: int | None = None
        self._unforced = 0
        self._rounds = 0

    @property
    def lag(self) -> int:
        """The number of offsets that the future log lags behind."""
        source = self.partition.log
        return source.end_offset - (source.start_offset if self._future is None else self._future.end_offset)

    @property
    def size_bytes(self) -> int:
        return 0 if self._future is None else self._future.size_bytes

    def prepare(self, now_ms: int) -> None:
        """Open or create the future log. KafkaError if its directory cannot provide it."""
        if self._future is not None and not self._future.closed:
            return
        self._unforced = self._rounds = 0
        source = self._source = self.partition.log
        start = source.start_offset
        name, topic_id = self.partition.topic_partition, self.partition.topic_id
        self._future = self.home.futures.open(name, topic_id, source.config, start_offset=start, now_ms=now_ms)
        self._watch(source)

    def _watch(self, source: Log) -> None:
        """Track truncations of the current log."""

        def record_truncation(offset: int) -> None:
            self._cut_at = offset if self._cut_at is None else min(self._cut_at, offset)

        source.add_truncation_listener(record_truncation)

    def next_step(self, *, assigned: bool, at_rest: bool) -> RelocationStep:
        """Return the next step; `assigned` is True if the metadata has the new directory."""
        future, source = self._logs()
        rest = at_rest and not (source.cleaning or self.partition.flushing or source.torn_at is not None)
        return next_step(
            RelocationProgress(
                source.start_offset, source.end_offset, future.end_offset, self._cut_at, self._unforced, self._rounds,
                self.is_reported, assigned, rest,
            )
        )  # fmt: skip

    def truncate(self, now_ms: int) -> None:
        future, _ = self._logs()
        if self._cut_at is not None:
            future.truncate_to(self._cut_at, now_ms=now_ms)
            self._cut_at = None

    def restart(self, now_ms: int) -> None:
        """Advance the start of the future log to that of the current one."""
        future, source = self._logs()
        future.truncate_fully_and_start_at(source.start_offset, now_ms=now_ms)

    def copy(self, now_ms: int) -> int:
        """Copy the next batches, and return their size. MoveAbandonedError if the current log cannot be read."""
        future, source = self._logs()
        self._cut_at = None  # its end is behind the end of the future log
        data = read_piece(source, future.end_offset)
        first = next(iter_headers(data))[1].base_offset
        if first < future.end_offset:  # records were deleted up to the middle of a batch
            future.truncate_fully_and_start_at(first, now_ms=now_ms)
        future.append_as_is(data, leader_epoch=INT32_MAX, now_ms=now_ms)
        self._unforced += len(data)
        return len(data)

    def flush(self) -> tuple[Callable[[], None], Callable[[], None]]:
        """Return the work for a disk thread, and a callback for the loop when it is done."""
        future, source = self._logs()
        size = self._unforced
        self.forcing = True
        caught_up = future.end_offset >= source.end_offset

        def forced() -> None:
            self._unforced -= size
            self._rounds += caught_up

        return future.flush, forced

    def switch_logs(self, now_ms: int) -> Log:
        """Replace the current log by the future log. The caller deletes the folder of the former."""
        future, source = self._logs()
        for epoch, offset in source.epochs.entries:
            if epoch > future.epochs.latest():
                future.epochs.assign(epoch, offset)
        future.producers, future.config = source.producers, source.config
        future.advance_start(source.start_offset)
        committed = source.high_watermark if source.replicated else None
        name = self.partition.topic_partition
        try:
            log = self.home.adopt(name, future, now_ms=now_ms, committed=committed)
        except OSError as error:
            raise storage_error(f"{name} cannot be put into {self.home.path}", error) from error
        log.producers, log.producers_in_doubt = source.producers, source.producers_in_doubt
        log.copy_transaction_ends(source)
        return log

    def _logs(self) -> tuple[Log, Log]:
        assert self._future is not None
        assert self._source is not None
        return self._future, self._source


def read_piece(source: Log, offset: int) -> bytes:
    """Return complete batches from an offset on, if there are any. Raise MoveAbandonedError if they cannot be read."""
    try:
        piece = source.read(offset, PIECE_BYTES)
        data = b"" if piece is None else os.pread(piece.file.fileno(), piece.size, piece.position)
    except (CorruptRecordError, KafkaError, OSError) as error:
        raise MoveAbandonedError(f"it cannot be read at offset {offset}: {error}") from error
    if not data:
        raise MoveAbandonedError(f"it has no records at offset {offset}, and that is not its end")
    return data
