"""Encode columns as record batches: a producer sends a table without a record object per row."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol

from msgspec import Struct

from ottla.errors import ErrorCode, error_for
from ottla.model import Buffer
from ottla.records import raw
from ottla.records.batch import HEADER_BYTES, TRANSACTIONAL, behind_header, make_true, new_header, write_header
from ottla.records.binary_column import BinaryColumn
from ottla.records.compression import Codec, compress

MAX_BATCH_BYTES = 0x7FFF_FFFF
MAX_SEQUENCE = 0x7FFF_FFFF
OVERHEAD_BYTES = 32
"""The maximum size of a record in addition to its key, value and headers: lengths, attributes, and deltas of time and
offset.
"""


class HasRows(Protocol):
    """The rows to encode: `Rows`, or decoded `Columns`."""

    @property
    def timestamps(self) -> memoryview: ...
    @property
    def keys(self) -> BinaryColumn: ...
    @property
    def values(self) -> BinaryColumn: ...
    @property
    def raw_headers(self) -> BinaryColumn | None: ...


class Rows(Struct, frozen=True):
    """Rows to encode, as columns of equal length."""

    timestamps: memoryview
    """Milliseconds since the epoch, int64 (format "q")."""
    keys: BinaryColumn
    values: BinaryColumn
    raw_headers: BinaryColumn | None = None
    """The headers of each record as made by `headers.encode_headers`; empty for a row without any."""

    @property
    def count(self) -> int:
        return len(self.timestamps)


class EncodedBatch(NamedTuple):
    """A batch, and the range of its rows."""

    data: Buffer
    first_row: int
    last_row: int


class RecordWriter:
    """Writes rows as records, after space for the batch's header."""

    __slots__ = ("buffer", "headers", "keys", "limit", "max_timestamp", "moments", "size", "target", "values")

    def __init__(self, rows: HasRows) -> None:
        self.moments = rows.timestamps
        self.keys = rows.keys
        self.values = rows.values
        self.headers = rows.raw_headers or BinaryColumn.of_nulls(0)
        self.size = HEADER_BYTES
        self.max_timestamp = 0
        self.write_to(bytearray(), 0)

    def write_to(self, buffer: bytearray, limit: int) -> None:
        """Write the following rows into `buffer`; a batch may use `limit` bytes, including its header."""
        self.buffer = buffer
        self.limit = limit
        self.target = raw.octets(buffer)

    def bound(self, first: int, stop: int) -> int:
        """Return the maximum size of the batch of rows from `first` to `stop`."""
        columns = (self.keys, self.values, self.headers)
        return (
            HEADER_BYTES + (stop - first) * OVERHEAD_BYTES + sum(count_bytes(column, first, stop) for column in columns)
        )

    def batch(self) -> memoryview:
        """Return the written bytes, with an undefined header."""
        return memoryview(self.buffer)[: self.size]

    def move_to(self, target: bytearray) -> memoryview:
        """Copy the written bytes into memory that belongs to another thread afterwards."""
        raw.move(raw.octets(target), self.target, self.size)
        return memoryview(target)[: self.size]

    def write(self, first: int, stop: int) -> int:
        """Write rows from `first` on, at least one, below `stop` and up to the limit; return the next row."""
        keys, values, headers = self.keys, self.values, self.headers
        key_bounds, value_bounds = raw.numbers(keys.bounds), raw.numbers(values.bounds)
        key_octets, value_octets = raw.pointer(keys.octets), raw.pointer(values.octets)
        moments, target = raw.moments(self.moments), self.target
        base_timestamp = max_timestamp = moments[first]
        position = HEADER_BYTES
        for row in range(first, stop):
            timestamp = moments[row]
            if timestamp < -1:
                raise ValueError(f"row {row} has timestamp {timestamp} ms, before 1970; Kafka has none below 0")
            delta = timestamp - base_timestamp
            key_size = size_in(keys, row) if keys.null_count else key_bounds[row + 1] - key_bounds[row]
            value_size = size_in(values, row) if values.null_count else value_bounds[row + 1] - value_bounds[row]
            header_size = size_in(headers, row) if row < headers.count else 0
            size = 1 + raw.varint_size(delta) + raw.varint_size(row - first)
            size += field_size(key_size) + field_size(value_size)
            size += header_size if header_size > 0 else 1
            if position + raw.varint_size(size) + size > self.limit:
                if row > first:
                    stop = row
                    break
                self.grow(raw.varint_size(size) + size)
                target = self.target
            at = raw.write_varint(target, position, size)
            target[at] = 0
            at = raw.write_varint(target, at + 1, delta)
            at = raw.write_varint(target, at, row - first)
            at = put(target, raw.write_varint(target, at, key_size), key_octets, key_bounds[row], key_size)
            at = put(target, raw.write_varint(target, at, value_size), value_octets, value_bounds[row], value_size)
            if header_size > 0:
                position = put(target, at, raw.pointer(headers.octets), headers.bounds[row], header_size)
            else:
                target[at] = 0
                position = at + 1
            max_timestamp = max(max_timestamp, timestamp)
        self.size, self.max_timestamp = position, max_timestamp
        return stop

    def grow(self, size: int) -> None:
        """Make space for a single record of `size` bytes; written bytes are lost."""
        if size + HEADER_BYTES > MAX_BATCH_BYTES:
            raise error_for(ErrorCode.MESSAGE_TOO_LARGE, f"a row makes a record of {size} bytes, beyond 2 GiB")
        if size + HEADER_BYTES > self.limit:
            self.write_to(raw.allocate(size + HEADER_BYTES), size + HEADER_BYTES)


def put(target: Any, at: int, source: Any, start: int, size: int) -> int:
    """Write `size` bytes from `start` on (none if negative); return the position after them."""
    if size <= 0:
        return at
    raw.copy(target, at, source, start, size)
    return at + size


def count_bytes(column: BinaryColumn, first: int, stop: int) -> int:
    """Return the size of the values in the rows from `first` to `stop`."""
    stop = min(stop, column.count)
    return column.bounds[stop] - column.bounds[first] if first < stop else 0


def size_in(column: BinaryColumn, row: int) -> int:
    """Return the size of the value in `row`, -1 for None; `BinaryColumn.size` without a check of `row`."""
    if column.null_count and not column.bits[row >> 3] >> (row & 7) & 1:
        return -1
    return column.bounds[row + 1] - column.bounds[row]


def field_size(size: int) -> int:
    """Return the size of a value of `size` bytes with its length."""
    return raw.varint_size(size) + (size if size > 0 else 0)


def encode_rows(
    rows: HasRows,
    start: int = 0,
    stop: int | None = None,
    *,
    max_bytes: int = 16384,
    codec: Codec = Codec.NONE,
    level: int | None = None,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    transactional: bool = False,
    sealed: bool = True,
    desk: bytearray | None = None,
    room: Callable[[int], bytearray] | None = None,
) -> Iterator[EncodedBatch]:
    """Yield the rows from `start` to `stop` as batches of at most `max_bytes` (uncompressed), or of one row.

    With a `base_sequence` the batches are numbered from it. Batches that are not `sealed` get their producer id and CRC
    when they are sent (`batch.set_producer`). Each batch is created on demand, in memory of its own.

    If another thread sends them, they are written into `desk`, which no other thread uses, and moved into the memory that
    `room` returns for a number of bytes: writing line by line into memory in another core's cache is much slower.
    """
    count = len(rows.timestamps)
    end = count if stop is None else stop
    columns = [rows.keys, rows.values, *([rows.raw_headers] if rows.raw_headers is not None else [])]
    if not 0 <= start <= end <= count or any(column.count < end for column in columns):
        lengths = ", ".join(str(column.count) for column in columns)
        raise IndexError(f"rows {start} to {end} of columns of {count}, {lengths} rows")
    writer = RecordWriter(rows)
    attributes = codec | (TRANSACTIONAL if transactional else 0)
    while start < end:
        wanted = max(HEADER_BYTES, min(max_bytes, writer.bound(start, end)))
        if desk is not None and wanted <= len(desk):
            writer.write_to(desk, wanted)
        elif codec is Codec.NONE or wanted != writer.limit:
            writer.write_to(raw.allocate(wanted), wanted)
        following = writer.write(start, end)
        header = new_header(
            attributes=attributes,
            count=following - start,
            base_timestamp=rows.timestamps[start],
            max_timestamp=writer.max_timestamp,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=base_sequence,
        )
        data = writer.batch()
        if codec is not Codec.NONE:
            data = behind_header(compress(codec, data[HEADER_BYTES:], level))
        write_header(data, header)
        if sealed:
            make_true(data)
        if codec is Codec.NONE and room is not None:
            data = writer.move_to(room(max(wanted, writer.size)))
        yield EncodedBatch(data, start, following - 1)
        if base_sequence >= 0:
            base_sequence = (base_sequence + following - start) & MAX_SEQUENCE
        start = following
