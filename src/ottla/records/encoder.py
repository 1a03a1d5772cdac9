"""Columns as record batches: what a producer sends of a table, without making a record of each row."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from ottla.errors import ErrorCode, error_for
from ottla.model import Buffer
from ottla.records import raw
from ottla.records.batch import HEADER_BYTES, TRANSACTIONAL, behind_header, make_true, new_header, write_header
from ottla.records.binary_column import BinaryColumn
from ottla.records.compression import Codec, compress

MAX_BATCH_BYTES = 0x7FFF_FFFF
MAX_SEQUENCE = 0x7FFF_FFFF
OVERHEAD_BYTES = 32
"""The most that a record takes beside its key, value and headers: its lengths, its attributes, and what it adds to time and offset."""


class HasRows(Protocol):
    """What can be encoded: `Rows`, and `Columns` that were decoded."""

    @property
    def timestamps(self) -> memoryview: ...
    @property
    def keys(self) -> BinaryColumn: ...
    @property
    def values(self) -> BinaryColumn: ...
    @property
    def raw_headers(self) -> BinaryColumn | None: ...


@dataclass(frozen=True, slots=True)
class Rows:
    """Records to be, as columns of one length."""

    timestamps: memoryview
    """Milliseconds since the epoch, int64 (format "q")."""
    keys: BinaryColumn
    values: BinaryColumn
    raw_headers: BinaryColumn | None = None
    """The headers of each record as `headers.encode_headers` makes them; nothing in a row without."""

    @property
    def count(self) -> int:
        return len(self.timestamps)


class EncodedBatch(NamedTuple):
    """A batch, and the rows that are in it."""

    data: Buffer
    first_row: int
    last_row: int


class RecordWriter:
    """Writes rows as records, with a place before them for the batch's header."""

    __slots__ = ("buffer", "headers", "keys", "limit", "max_timestamp", "moments", "size", "target", "values")

    def __init__(self, rows: HasRows) -> None:
        self.moments = rows.timestamps
        self.keys = rows.keys
        self.values = rows.values
        self.headers = rows.raw_headers or BinaryColumn.of_nulls(0)
        self.size = HEADER_BYTES
        self.max_timestamp = 0
        self.write_to(bytearray())

    def write_to(self, buffer: bytearray) -> None:
        """What comes next is written into `buffer`, which is as large as a batch may be, header included."""
        self.buffer = buffer
        self.limit = len(buffer)
        self.target = raw.octets(buffer)

    def bound(self, first: int, stop: int) -> int:
        """The most bytes that the batch of rows from `first` to `stop` takes."""
        columns = (self.keys, self.values, self.headers)
        return HEADER_BYTES + (stop - first) * OVERHEAD_BYTES + sum(span(column, first, stop) for column in columns)

    def batch(self) -> memoryview:
        """What was written, with whatever is in the header's place."""
        return memoryview(self.buffer)[: self.size]

    def write(self, first: int, stop: int) -> int:
        """Write rows from `first` on, at least one, below `stop` and up to the limit; return the next row."""
        keys, values, headers = self.keys, self.values, self.headers
        base_timestamp = self.moments[first]
        self.max_timestamp = base_timestamp
        self.size = HEADER_BYTES
        for row in range(first, stop):
            timestamp = self.moments[row]
            if timestamp < -1:
                raise ValueError(f"row {row} has timestamp {timestamp} ms, before 1970; Kafka has none below 0")
            delta = timestamp - base_timestamp
            size = 1 + raw.varint_size(delta) + raw.varint_size(row - first)
            key_size = size_in(keys, row)
            value_size = size_in(values, row)
            size += field_size(key_size) + field_size(value_size)
            header_size = size_in(headers, row) if row < headers.count else 0
            size += header_size if header_size > 0 else 1
            if self.size + raw.varint_size(size) + size > self.limit:
                if row > first:
                    return row
                self.grow(raw.varint_size(size) + size)
            at = raw.write_varint(self.target, self.size, size)
            self.target[at] = 0
            at = raw.write_varint(self.target, at + 1, delta)
            at = raw.write_varint(self.target, at, row - first)
            at = self.put(raw.write_varint(self.target, at, key_size), keys, row, key_size)
            at = self.put(raw.write_varint(self.target, at, value_size), values, row, value_size)
            if header_size > 0:
                self.size = self.put(at, headers, row, header_size)
            else:
                self.target[at] = 0
                self.size = at + 1
            self.max_timestamp = max(self.max_timestamp, timestamp)
        return stop

    def put(self, at: int, column: BinaryColumn, row: int, size: int) -> int:
        """Write `size` bytes, none if it is negative, of the value in `row`; return the position after them."""
        if size <= 0:
            return at
        raw.copy(self.target, at, raw.pointer(column.octets), column.bounds[row], size)
        return at + size

    def grow(self, size: int) -> None:
        """Make room for a single record of `size` bytes; what was written is lost."""
        if size + HEADER_BYTES > MAX_BATCH_BYTES:
            raise error_for(ErrorCode.MESSAGE_TOO_LARGE, f"a row makes a record of {size} bytes, beyond 2 GiB")
        if size + HEADER_BYTES > self.limit:
            self.write_to(raw.allocate(size + HEADER_BYTES))


def span(column: BinaryColumn, first: int, stop: int) -> int:
    """Bytes of the values in the rows from `first` to `stop`."""
    stop = min(stop, column.count)
    return column.bounds[stop] - column.bounds[first] if first < stop else 0


def size_in(column: BinaryColumn, row: int) -> int:
    """Bytes of the value in `row`, -1 if it is None; `BinaryColumn.size` without a look at `row`."""
    if column.null_count and not column.bits[row >> 3] >> (row & 7) & 1:
        return -1
    return column.bounds[row + 1] - column.bounds[row]


def field_size(size: int) -> int:
    """Bytes that a value of `size` bytes takes with its length before it."""
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
    room: Callable[[int], bytearray] | None = None,
) -> Iterator[EncodedBatch]:
    """The rows from `start` up to `stop` as batches of at most `max_bytes` (uncompressed), or of one row.

    With a `base_sequence` the batches are numbered on from it. Batches that are not `sealed` get who sends them, and
    their CRC, when they are sent (`batch.identify`). Each is made when it is asked for, in memory of its own, which is
    what `room` gives for so many bytes.
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
        if codec is Codec.NONE or wanted != writer.limit:
            writer.write_to(raw.allocate(wanted) if room is None else room(wanted))
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
        yield EncodedBatch(data, start, following - 1)
        if base_sequence >= 0:
            base_sequence = (base_sequence + following - start) & MAX_SEQUENCE
        start = following
