"""One copy on its way to another directory: its future log, filled from the present one, and put in its place.

What is done next `coordination/replication/relocation.py` decides. Faults of the present log end the move; those of the
directory that it goes to are raised to be tried again.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from ottla.broker.partitions.partition import Partition
from ottla.coordination.replication.relocation import Progress, Step, next_step
from ottla.errors import CorruptRecordError, KafkaError
from ottla.model import INT32_MAX
from ottla.records.batch import iter_headers
from ottla.storage.directory.data_directory import DataDirectory
from ottla.storage.files.storage_error import storage_error
from ottla.storage.log import Log

PIECE_BYTES = 256 * 1024


class LeftError(Exception):
    """The move has ended before its end: why, for a person."""


class Relocation:
    """Of one partition. Belongs to the loop, but for `force`."""

    def __init__(self, partition: Partition, home: DataDirectory) -> None:
        self.partition = partition
        self.home = home
        """Where it goes."""
        self.told = False
        """Whether the metadata were asked to say that it is there."""
        self.forcing = False
        self.not_before = 0.0
        """When to go on after a fault; a reading of the monotonic clock."""
        self.fault = ""
        self._future: Log | None = None
        self._source: Log | None = None
        self._cut_at: int | None = None
        self._unforced = 0
        self._rounds = 0

    @property
    def lag(self) -> int:
        """How many offsets the future copy is behind."""
        source = self.partition.log
        return source.end_offset - (source.start_offset if self._future is None else self._future.end_offset)

    @property
    def size_bytes(self) -> int:
        return 0 if self._future is None else self._future.size_bytes

    def ready(self, now_ms: int) -> None:
        """Have the future log open; KafkaError where its directory does not give it."""
        if self._future is not None and not self._future.closed:
            return
        self._unforced = self._rounds = 0
        source = self._source = self.partition.log
        start = source.start_offset
        name, topic_id = self.partition.topic_partition, self.partition.topic_id
        self._future = self.home.futures.open(name, topic_id, source.config, start_offset=start, now_ms=now_ms)
        self._watch(source)

    def _watch(self, source: Log) -> None:
        """Hear when the present log is cut."""
        before = source.before_cut

        def note_cut(offset: int) -> None:
            self._cut_at = offset if self._cut_at is None else min(self._cut_at, offset)
            before(offset)

        source.before_cut = note_cut

    def next_step(self, *, assigned: bool, at_rest: bool) -> Step:
        """`assigned`: whether the metadata say that the copy is there."""
        future, source = self._logs()
        rest = at_rest and not (source.cleaning or self.partition.flushing or source.torn_at is not None)
        return next_step(
            Progress(
                source.start_offset, source.end_offset, future.end_offset, self._cut_at, self._unforced, self._rounds,
                self.told, assigned, rest,
            )
        )  # fmt: skip

    def cut(self, now_ms: int) -> None:
        future, _ = self._logs()
        if self._cut_at is not None:
            future.truncate_to(self._cut_at, now_ms=now_ms)
            self._cut_at = None

    def begin_anew(self, now_ms: int) -> None:
        """The present log begins later by now."""
        future, source = self._logs()
        future.truncate_fully_and_start_at(source.start_offset, now_ms=now_ms)

    def copy(self, now_ms: int) -> int:
        """Take the next piece; its bytes. LeftError where the present log does not give it."""
        future, source = self._logs()
        self._cut_at = None  # what it said is behind the end of the copy
        data = piece_of(source, future.end_offset)
        first = next(iter_headers(data))[1].base_offset
        if first < future.end_offset:  # records were deleted up to the middle of a batch
            future.truncate_fully_and_start_at(first, now_ms=now_ms)
        future.append_as_is(data, leader_epoch=INT32_MAX, now_ms=now_ms)
        self._unforced += len(data)
        return len(data)

    def force(self) -> tuple[Callable[[], None], Callable[[], None]]:
        """Work for a disk thread, and what follows in the loop when it is done."""
        future, source = self._logs()
        size = self._unforced
        self.forcing = True
        caught_up = future.end_offset >= source.end_offset

        def forced() -> None:
            self._unforced -= size
            self._rounds += caught_up

        return future.flush, forced

    def switch(self, now_ms: int) -> Log:
        """Put the future log in the place of the present one, whose folder is left to the caller."""
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


def piece_of(source: Log, offset: int) -> bytes:
    """Whole batches from an offset on, where there are any. LeftError where they cannot be read."""
    try:
        piece = source.read(offset, PIECE_BYTES)
        data = b"" if piece is None else os.pread(piece.file.fileno(), piece.size, piece.position)
    except (CorruptRecordError, KafkaError, OSError) as error:
        raise LeftError(f"it cannot be read at offset {offset}: {error}") from error
    if not data:
        raise LeftError(f"it has no records at offset {offset}, and does not end there")
    return data
