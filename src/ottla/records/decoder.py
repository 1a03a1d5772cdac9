"""Decode the records of batches into columns, after `survey` has checked the batches.

The data is untrusted: each length is compared with the available bytes before it is used.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from ottla.errors import CorruptRecordError
from ottla.records import raw
from ottla.records.binary_column import BinaryColumn
from ottla.records.survey import MIN_RECORD_BYTES, Batch

MASK64 = 0xFFFF_FFFF_FFFF_FFFF


class BinaryWriter:
    """A column of bytes during decoding, for `rows` values with about `size_bytes` in total.

    With `rows` of 0 it discards all values.
    """

    __slots__ = ("bitmap", "bits", "bounds", "data", "null_count", "offsets", "room", "rows", "size", "target")

    def __init__(self, rows: int, size_bytes: int) -> None:
        self.rows = rows
        self.offsets = memoryview(raw.allocate(4 * (rows + 1))).cast("i")
        self.data = raw.allocate(size_bytes)
        self.bitmap = bytearray((rows + 7) // 8)
        self.room = size_bytes
        self.size = 0
        self.null_count = 0
        self.bounds = self.offsets
        self.bounds[0] = 0
        self.target = raw.octets(self.data)
        self.bits = raw.octets(self.bitmap)

    def add(self, row: int, source: Any, start: int, size: int) -> None:
        """Set the value in `row` to `size` bytes of `source`, or to None if `size` is negative."""
        if self.rows > 0:
            if size < 0:
                self.null_count += 1
            else:
                if size > self.room - self.size:
                    self.grow(size)
                raw.copy(self.target, self.size, source, start, size)
                self.size += size
                self.bits[row >> 3] |= 1 << (row & 7)
            self.bounds[row + 1] = self.size

    def grow(self, size: int) -> None:
        """Make space for `size` more bytes."""
        self.room = max(2 * self.room, self.size + size)
        self.data += bytes(self.room - len(self.data))
        self.target = raw.octets(self.data)

    def column(self, rows: int) -> BinaryColumn:
        """Return the column of the `rows` added, an empty one if values were discarded; nothing can be added afterwards."""
        rows = min(rows, self.rows)
        del self.data[self.size :]
        validity = self.bitmap if self.null_count else None
        return BinaryColumn(rows, self.offsets[: rows + 1], self.data, validity, self.null_count)


class RowWriter:
    __slots__ = (
        "count",
        "headers",
        "keys",
        "moments",
        "numbers",
        "offsets",
        "timestamps",
        "values",
        "with_headers",
        "with_offsets",
        "with_timestamps",
    )

    def __init__(self, rows: int, size_bytes: int, wanted: Collection[str], with_headers: bool) -> None:
        self.count = 0
        self.with_offsets = "offset" in wanted
        self.with_timestamps = "timestamp" in wanted
        # Memory that is not needed after all is not free: taking it and giving it back costs more than decoding.
        self.keys = make_writer("key" in wanted, rows, size_bytes // 16)
        self.values = make_writer("value" in wanted, rows, size_bytes - MIN_RECORD_BYTES * rows)
        self.headers = make_writer(with_headers, rows, 0)
        self.with_headers = with_headers
        self.offsets = memoryview(raw.allocate(8 * rows if self.with_offsets else 0)).cast("q")
        self.timestamps = memoryview(raw.allocate(8 * rows if self.with_timestamps else 0)).cast("q")
        self.numbers = self.offsets
        self.moments = self.timestamps.cast("B").cast("Q")

    def add(self, batch: Batch, from_offset: int, up_to: int) -> None:
        """Add the records of `batch` with offsets from `from_offset` on and below `up_to`."""
        data = raw.pointer(batch.records)
        position = batch.start
        end = batch.stop
        row = self.count
        for _ in range(batch.count):
            size, position = raw.read_varint(data, position, end)
            if not 0 <= size <= end - position:
                raise broken_record_error(batch, row - self.count)
            stop = position + size
            delta, position = raw.read_varint(data, position + 1, stop)
            offset_delta, position = raw.read_varint(data, position, stop)
            key_size, key = raw.read_varint(data, position, stop)
            if not -1 <= key_size <= stop - key:
                raise broken_record_error(batch, row - self.count)
            value_size, value = raw.read_varint(data, key + (key_size if key_size > 0 else 0), stop)
            if not -1 <= value_size < stop - value or not 0 <= offset_delta <= batch.last_offset_delta:
                raise broken_record_error(batch, row - self.count)
            position = value + (value_size if value_size > 0 else 0)
            offset = batch.base_offset + offset_delta
            if from_offset <= offset < up_to:
                if self.with_headers:
                    if position + 1 == stop and data[position] == 0:
                        self.headers.add(row, data, position, 0)
                    elif headers_end(data, position, stop) == stop:
                        self.headers.add(row, data, position, stop - position)
                    else:
                        raise broken_record_error(batch, row - self.count)
                self.locate(
                    row, offset, batch.max_timestamp if batch.append_time else (batch.base_timestamp + delta) & MASK64
                )
                self.keys.add(row, data, key, key_size)
                self.values.add(row, data, value, value_size)
                row += 1
            position = stop
        if position != end:
            raise trailing_bytes_error(batch, end - position)
        self.count = row

    def locate(self, row: int, offset: int, moment: int) -> None:
        """Store offset and timestamp of the record in `row`, if requested."""
        if self.with_offsets:
            self.numbers[row] = offset
        if self.with_timestamps:
            self.moments[row] = moment


def make_writer(wanted: bool, rows: int, size_bytes: int) -> BinaryWriter:
    """Return the writer of a column, or one that discards values."""
    return BinaryWriter(rows, size_bytes) if wanted else BinaryWriter(0, 0)


def headers_end(data: Any, position: int, stop: int) -> int:
    """Return the position after the headers at `position`, or a position beyond `stop` if they are malformed."""
    count, position = raw.read_varint(data, position, stop)
    if count < 0:
        return stop + 1
    while count > 0 and position <= stop:
        size, position = raw.read_varint(data, position, stop)
        if not 0 <= size <= stop - position:
            return stop + 1
        size, position = raw.read_varint(data, position + size, stop)
        if not -1 <= size <= stop - position:
            return stop + 1
        position += size if size > 0 else 0
        count -= 1
    return position


def broken_record_error(batch: Batch, index: int) -> CorruptRecordError:
    return CorruptRecordError(
        f"a record of {describe_place(batch)} does not fit its bytes, after {index} that were taken"
    )


def trailing_bytes_error(batch: Batch, size: int) -> CorruptRecordError:
    return CorruptRecordError(f"{size} bytes follow the last record of {describe_place(batch)}")


def describe_place(batch: Batch) -> str:
    return f"the batch at offset {batch.base_offset}, which says it has {batch.count} records"
