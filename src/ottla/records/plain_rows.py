"""The decoder for uncompiled Python, with the same results as `decoder`.

 In the interpreter a call costs more than its work, and unused columns are expensive. Therefore records are decoded in
one loop without calls, values stay bytes, and columns are created on access.
"""

from __future__ import annotations

from array import array
from itertools import accumulate, compress
from typing import Any

from ottla.errors import CorruptRecordError
from ottla.records import raw
from ottla.records.binary_column import BinaryColumn
from ottla.records.columns import BatchRows, Columns, add_run
from ottla.records.decoder import broken_record_error, trailing_bytes_error
from ottla.records.headers import decode_headers
from ottla.records.survey import Batch, Survey

MASK64 = 0xFFFF_FFFF_FFFF_FFFF
SIGN = 1 << 63
BROKEN = b"\x02"
"""Encoded headers with a count of zero."""
PARTS = ("bits", "bounds", "data", "null_count", "octets", "offsets", "validity")
"""Attributes of BinaryColumn that a ListColumn creates on access."""
NO_HEADERS = b"\x00"
LONG = 1 << 14
"""The limit of numbers with two bytes."""
PADDING = bytes(128)
"""Padding that lets the loop read a little beyond the end before it checks the end."""


class ListColumn:
    """A column as a list of bytes and None; other attributes of a BinaryColumn are created on access."""

    def __init__(self, values: list[bytes | None]) -> None:
        self.values = values
        self.count = len(values)

    def get(self, row: int) -> bytes | None:
        """Return the value in `row`, as `BinaryColumn.get`."""
        if row < 0:
            raise IndexError(f"row {row} of {self.count}")
        return self.values[row]

    def size(self, row: int) -> int:
        """Return the size of the value in `row`, as `BinaryColumn.size`."""
        value = self.get(row)
        return -1 if value is None else len(value)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        column = self.column()
        self.__dict__.update({part: getattr(column, part) for part in PARTS})
        return getattr(column, name)

    def column(self) -> BinaryColumn:
        """Return the column with positions and one buffer."""
        values = self.values
        data = b"".join([value for value in values if value is not None])
        bounds = array("i", accumulate([len(value) if value else 0 for value in values], initial=0))
        missing = values.count(None)
        validity = bytearray((self.count + 7) // 8) if missing else None
        if validity is not None:
            for row, value in enumerate(values):
                if value is not None:
                    validity[row >> 3] |= 1 << (row & 7)
        return BinaryColumn(self.count, memoryview(bounds), data, validity, missing)


class PlainRowValues:
    """The records of one batch, with offsets and times as undecoded zigzag deltas."""

    def __init__(self, count: int) -> None:
        self.times = [0] * count
        self.offsets = [0] * count
        self.keys: list[bytes | None] = [None] * count
        self.values: list[bytes | None] = [None] * count
        self.headers: list[bytes | None] = [b""] * count
        self.broken_at: int | None = None
        """The first record that is malformed."""
        self.stop = 0
        """The end of the last record that was decoded by the slow path."""

    def decode_rows(self, batch: Batch, data: bytes, end: int, to_check: range) -> int:
        """Decode the rows from `data` up to `end`; return the end of the last one.

        Headers of the offsets in `to_check` are checked.

        Sizes are zigzag varints: the lowest bit is the sign, the highest bit of a byte says that another one follows.
        Most have one or two bytes; a third would make the number LONG, and such a record takes the slow path.
        """
        times, offsets, keys, values = self.times, self.offsets, self.keys, self.values
        most = 2 * batch.last_offset_delta
        position = 0
        for row in range(len(times)):
            start = position
            size = data[position]
            if size < 128:
                position += 2
            else:
                size += (data[position + 1] << 7) - 128
                position += 3
            stop = position + (size >> 1) - 1
            time = data[position]
            if time < 128:
                position += 1
            else:
                time += (data[position + 1] << 7) - 128
                position += 2
            offset = data[position]
            if offset < 128:
                position += 1
            else:
                offset += (data[position + 1] << 7) - 128
                position += 2
            key_size = data[position]
            position += 1
            if key_size != 1:
                after = position + (key_size >> 1)
                keys[row] = data[position:after]
                position = after
                size |= LONG if key_size & 129 else 0
            value_size = data[position]
            if value_size < 128:
                position += 1
            else:
                value_size += (data[position + 1] << 7) - 128
                position += 2
            after = position + (value_size >> 1)
            odd = (size | offset | value_size) & 1 or offset > most
            if odd or (size | time | offset | value_size) >= LONG or not after + 1 == stop <= end or data[after]:
                if not self.decode_record(row, batch, data, start, end, to_check):
                    self.broken_at = row
                    return start
                position = self.stop
                continue
            times[row] = time
            offsets[row] = offset
            values[row] = data[position:after]
            position = stop
        return position

    def decode_record(self, row: int, batch: Batch, data: bytes, position: int, end: int, to_check: range) -> bool:
        """Decode any record, varint by varint; return false if it is malformed."""
        read = raw.read_varint
        size, position = read(data, position, end)
        stop = self.stop = position + size
        if size < 0 or stop > end:
            return False
        time, position = read(data, position + 1, stop)
        offset, position = read(data, position, stop)
        key_size, key = read(data, position, stop)
        if not -1 <= key_size <= stop - key:
            return False
        value_size, value = read(data, key + max(key_size, 0), stop)
        if not -1 <= value_size < stop - value or not 0 <= offset <= batch.last_offset_delta:
            return False
        position = value + max(value_size, 0)
        self.times[row] = zigzag(time)
        self.offsets[row] = zigzag(offset)
        self.keys[row] = data[key : key + key_size] if key_size >= 0 else None
        self.values[row] = data[value:position] if value_size >= 0 else None
        headers = data[position:stop]
        self.headers[row] = b"" if headers == NO_HEADERS else headers
        return zigzag(offset) not in to_check or are_headers(headers)

    def keep_rows(self, wanted: list[bool]) -> None:
        """Keep only the given rows."""
        self.times, self.offsets = list(compress(self.times, wanted)), list(compress(self.offsets, wanted))
        self.keys, self.values = list(compress(self.keys, wanted)), list(compress(self.values, wanted))
        self.headers = list(compress(self.headers, wanted))


class PlainRows:
    """The columns during decoding, with the interface of `decoder.RowWriter`."""

    def __init__(self, with_headers: bool) -> None:
        self.count = 0
        self.with_headers = with_headers
        self.keys: list[bytes | None] = []
        self.values: list[bytes | None] = []
        self.headers: list[bytes | None] = []
        self.deltas: list[tuple[Batch, list[int], list[int]]] = []
        """The zigzag deltas of times and offsets of each batch."""

    def add(self, batch: Batch, from_offset: int, up_to: int) -> None:
        """Add the records of `batch` with offsets from `from_offset` on and below `up_to`."""
        end = batch.stop - batch.start
        data = bytes(memoryview(batch.records)[batch.start : batch.stop]) + PADDING
        first, last = 2 * (from_offset - batch.base_offset), 2 * (up_to - batch.base_offset)
        rows = PlainRowValues(batch.count)
        position = rows.decode_rows(batch, data, end, range(first, last) if self.with_headers else range(0))
        if rows.broken_at is not None:
            raise broken_record_error(batch, sum(first <= delta < last for delta in rows.offsets[: rows.broken_at]))
        if position != end:
            raise trailing_bytes_error(batch, end - position)
        if first > 0 or last <= 2 * batch.last_offset_delta:
            rows.keep_rows([first <= delta < last for delta in rows.offsets])
        self.deltas.append((batch, rows.times, rows.offsets))
        self.keys += rows.keys
        self.values += rows.values
        self.headers += rows.headers
        self.count += len(rows.values)

    def offsets(self) -> memoryview:
        """Return the offset of each row."""
        made = array("q")
        for batch, _, offsets in self.deltas:
            base = batch.base_offset
            made.extend([base + (delta >> 1) for delta in offsets])
        return memoryview(made)

    def timestamps(self) -> memoryview:
        """Return the timestamp of each row."""
        made = array("q")
        for batch, times, _ in self.deltas:
            base = batch.base_timestamp
            if batch.append_time:
                made.extend([signed(batch.max_timestamp)] * len(times))
            else:
                made.extend([signed(base + (delta >> 1 ^ -(delta & 1))) for delta in times])
        return memoryview(made)


class PlainColumns(Columns):
    """Columns that are created on access; `get` of keys, values and headers needs none of them."""

    __slots__ = ("_rows",)

    def __init__(self, rows: PlainRows, runs: list[BatchRows], next_offset: int) -> None:
        self._rows = rows
        self.count = rows.count
        self.keys = column_of(rows.keys)
        self.values = column_of(rows.values)
        self.raw_headers = column_of(rows.headers) if rows.with_headers else None
        self.runs = runs
        self.next_offset = next_offset

    def __getattr__(self, name: str) -> memoryview:
        """Create `offsets` or `timestamps` on first access."""
        if name == "offsets":
            self.offsets = self._rows.offsets()
            return self.offsets
        if name == "timestamps":
            self.timestamps = self._rows.timestamps()
            return self.timestamps
        raise AttributeError(f"columns have no {name}")


def column_of(values: list[bytes | None]) -> BinaryColumn:
    """Decode the rows of batches; columns that are not used cost nothing."""
    column: Any = ListColumn(values)
    return column  # type: ignore[no-any-return]


def plain_columns(found: Survey, from_offset: int, up_to: int, with_headers: bool) -> Columns:
    """Decode the rows of batches; columns that are not used cost nothing."""
    rows = PlainRows(with_headers)
    runs: list[BatchRows] = []
    for batch in found.batches:
        add_run(runs, rows.count, batch)
        rows.add(batch, from_offset, up_to)
    return PlainColumns(rows, runs, found.next_offset)


def are_headers(data: bytes | None) -> bool:
    """Return True if headers fill these bytes."""
    try:
        decode_headers(data or BROKEN)
    except CorruptRecordError:
        return False
    return True


def signed(number: int) -> int:
    """Return the lowest 64 bits as a signed number."""
    return ((number + SIGN) & MASK64) - SIGN


def zigzag(number: int) -> int:
    """Return the zigzag code of a number."""
    return (number << 1) ^ (number >> 63)
