"""Segment files: the records of a range of offsets of one partition.

A `.log` file is what a broker stores: Kafka's record batches of format 2, one after the other, so that `ottla log dump` and
`kafka-dump-log` print it. A batch contains records with consecutive offsets; a gap of compaction or of transactions starts a new
batch. A `.parquet` file has one row for each record, in the columns of `ottla.records.arrow`.

Records are stored without their producer, and with the timestamp that a consumer sees.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from ottla.backup.manifest import SegmentFormat, damaged
from ottla.errors import CorruptRecordError
from ottla.records.batch import iter_headers, stamp
from ottla.records.columns import Columns, decode, encode_rows
from ottla.records.compression import Codec

BATCH_BYTES = 1 << 20
COMPRESSED_FROM_BYTES = 1024
"""The size of a batch from which it is compressed."""
SLICE_BYTES = 8 << 20
"""The amount of batches that is decoded at once."""
LIMIT_BYTES = 0x7FFF_FFFF
NO_LEADER_EPOCH = -1


class SegmentWriter(Protocol):
    """Writes a new segment file."""

    @property
    def size_bytes(self) -> int:
        """The approximate size of the file so far."""
        ...

    def write(self, columns: Columns) -> None:
        """Append records."""
        ...

    def close(self) -> None:
        """Finish the file and flush it to the disk."""
        ...


class LogWriter:
    """Writes record batches."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("wb")
        self.size_bytes = 0

    def write(self, columns: Columns) -> None:
        for start, stop in consecutive_runs(columns.offsets, columns.count):
            size = sum(column.bounds[stop] - column.bounds[start] for column in (columns.keys, columns.values))
            codec = Codec.ZSTD if size >= COMPRESSED_FROM_BYTES else Codec.NONE
            for batch in encode_rows(columns, start, stop, max_bytes=BATCH_BYTES, codec=codec):
                data = memoryview(batch.data)
                stamp(data, 0, columns.offsets[batch.first_row], NO_LEADER_EPOCH)
                self._file.write(data)
                self.size_bytes += len(data)

    def close(self) -> None:
        with self._file:
            self._file.flush()
            os.fsync(self._file.fileno())


def open_writer(kind: SegmentFormat, path: Path, topic: str, partition: int) -> SegmentWriter:
    """Create a segment file."""
    if kind == "log":
        return LogWriter(path)
    from ottla.backup.parquet_segments import ParquetWriter

    return ParquetWriter(path, topic, partition)


def read_records(path: Path) -> Iterator[Columns]:
    """Yield the records of a segment file, some megabytes at a time. Raises BackupError if it is damaged."""
    if path.suffix != ".parquet":
        return read_log(path)
    from ottla.backup.parquet_segments import read_parquet

    return read_parquet(path)


def read_log(path: Path) -> Iterator[Columns]:
    for data in read_slices(path):
        try:
            columns = decode(data, limit_bytes=LIMIT_BYTES)
        except CorruptRecordError as error:
            raise damaged(path, error) from None
        yield columns


def read_slices(path: Path) -> Iterator[bytes]:
    """Yield whole batches, several megabytes of them at a time."""
    size = path.stat().st_size
    if not size:
        raise damaged(path, "it is empty")
    with (
        path.open("rb") as file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped,
        memoryview(mapped) as data,
    ):
        start = end = 0
        try:
            for position, header in iter_headers(data):
                end = position + header.size_bytes
                if end - start >= SLICE_BYTES:
                    yield bytes(data[start:end])
                    start = end
        except CorruptRecordError as error:
            raise damaged(path, error) from None
        if end != size:
            raise damaged(path, f"{size - end} bytes after the last whole batch")
        if start < end:
            yield bytes(data[start:end])


def count_below(path: Path, offset: int) -> int:
    """Return the number of records in a segment file with smaller offsets."""
    if path.suffix == ".parquet":
        return sum(sum(each < offset for each in columns.offsets) for columns in read_records(path))
    total = 0
    for data in read_slices(path):
        for _, header in iter_headers(data):
            total += max(0, min(header.count, offset - header.base_offset))
    return total


def consecutive_runs(offsets: memoryview, count: int) -> Iterator[tuple[int, int]]:
    """Yield the ranges of rows with offsets without a gap."""
    if count and offsets[count - 1] - offsets[0] == count - 1:
        yield 0, count
        return
    start = 0
    for row in range(1, count):
        if offsets[row] != offsets[row - 1] + 1:
            yield start, row
            start = row
    if start < count:
        yield start, count
