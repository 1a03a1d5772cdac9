"""The second pass where nothing is compiled: the same as `decoder`, written for the interpreter.

There a call costs more than all that is done in it, and what nobody asks for is dear. So records are taken apart in one
loop without calls, values stay the bytes they were cut out as, and columns are made of them when somebody looks.
"""

from __future__ import annotations

from array import array
from itertools import accumulate, compress
from typing import Any

from ottla.errors import CorruptRecordError
from ottla.records import raw
from ottla.records.binary_column import BinaryColumn
from ottla.records.columns import Columns, Run, note_run
from ottla.records.decoder import broken, trailing
from ottla.records.headers import decode_headers
from ottla.records.survey import Batch, Survey

MASK64 = 0xFFFF_FFFF_FFFF_FFFF
SIGN = 1 << 63
BROKEN = b"\x02"
"""Headers that say there is one, and have none."""
PARTS = ("bits", "bounds", "data", "null_count", "octets", "offsets", "validity")
"""What a BinaryColumn has that a ListColumn does not have at once."""
PADDING = bytes(16)
"""So that the loop may look a little beyond the end before it sees that it is there."""


class ListColumn:
    """A column of bytes and None as a list of them; what else a BinaryColumn has is made when it is asked for."""

    def __init__(self, values: list[bytes | None]) -> None:
        self.values = values
        self.count = len(values)

    def get(self, row: int) -> bytes | None:
        """As `BinaryColumn.get`."""
        if row < 0:
            raise IndexError(f"row {row} of {self.count}")
        return self.values[row]

    def size(self, row: int) -> int:
        """As `BinaryColumn.size`."""
        value = self.get(row)
        return -1 if value is None else len(value)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        column = self.column()
        self.__dict__.update({part: getattr(column, part) for part in PARTS})
        return getattr(column, name)

    def column(self) -> BinaryColumn:
        """The same with positions and one buffer."""
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


class PlainRows:
    """All columns under way, as of `decoder.RowWriter`."""

    def __init__(self, with_headers: bool) -> None:
        self.count = 0
        self.with_headers = with_headers
        self.keys: list[bytes | None] = []
        self.values: list[bytes | None] = []
        self.headers: list[bytes | None] = []
        self.deltas: list[tuple[Batch, list[int], list[int]]] = []
        """Of each batch: zigzag deltas of the times and of the offsets of its rows."""

    def add(  # noqa: C901 - a call for each part of a record would take longer than the part
        self, batch: Batch, from_offset: int, up_to: int
    ) -> None:
        """The records of `batch` that have offsets from `from_offset` on and below `up_to`."""
        end = batch.stop - batch.start
        data = bytes(memoryview(batch.records)[batch.start : batch.stop]) + PADDING
        count = batch.count
        times, offsets = [0] * count, [0] * count
        keys: list[bytes | None] = [None] * count
        values: list[bytes | None] = [None] * count
        headers: list[bytes | None] = [b""] * count
        read = raw.read_varint
        first, last = from_offset - batch.base_offset, up_to - batch.base_offset

        def wanted(deltas: list[int]) -> int:
            return sum(first <= delta >> 1 < last for delta in deltas)

        most = 2 * batch.last_offset_delta
        position = 0
        # Sizes are varints in zigzag code: the lowest bit is the sign, and each of the first two octets that matter for
        # a size below 8192 says by its highest bit whether another one follows. What is larger takes the long way.
        for row in range(count):
            size = data[position]
            if size < 128:
                position += 2
            elif (high := data[position + 1]) < 128:
                size += (high << 7) - 128
                position += 3
            else:
                size, position = read(data, position, end)
                size, position = zigzag(size), position + 1
            stop = position + (size >> 1) - 1
            if stop > end:
                raise broken(batch, wanted(offsets[:row]))
            time = data[position]
            if time < 128:
                position += 1
            elif (high := data[position + 1]) < 128:
                time += (high << 7) - 128
                position += 2
            else:
                time, position = read(data, position, stop)
                time = zigzag(time)
            offset = data[position]
            if offset < 128:
                position += 1
            elif (high := data[position + 1]) < 128:
                offset += (high << 7) - 128
                position += 2
            else:
                offset, position = read(data, position, stop)
                offset = zigzag(offset)
            key_size = data[position]
            if key_size < 128:
                position += 1
            else:
                key_size, position = read(data, position, stop)
                key_size = zigzag(key_size)
            if key_size & 1:
                if key_size != 1:
                    raise broken(batch, wanted(offsets[:row]))
            else:
                after = position + (key_size >> 1)
                if after > stop:
                    raise broken(batch, wanted(offsets[:row]))
                keys[row] = data[position:after]
                position = after
            value_size = data[position]
            if value_size < 128:
                position += 1
            elif (high := data[position + 1]) < 128:
                value_size += (high << 7) - 128
                position += 2
            else:
                value_size, position = read(data, position, stop)
                value_size = zigzag(value_size)
            if value_size & 1:
                after = position
                if value_size != 1 or after > stop:
                    raise broken(batch, wanted(offsets[:row]))
            else:
                after = position + (value_size >> 1)
                values[row] = data[position:after]
                if after >= stop:
                    raise broken(batch, wanted(offsets[:row]))
            if (size | offset) & 1 or offset > most:
                raise broken(batch, wanted(offsets[:row]))
            times[row] = time
            offsets[row] = offset
            if data[after] or after + 1 != stop:
                headers[row] = data[after:stop]
                if self.with_headers and wanted([offset]) and not are_headers(headers[row]):
                    raise broken(batch, wanted(offsets[:row]))
            position = stop
        if position != end:
            raise trailing(batch, end - position)
        if batch.base_offset < from_offset or batch.base_offset + batch.last_offset_delta >= up_to:
            kept = [first <= delta >> 1 < last for delta in offsets]
            times, offsets = list(compress(times, kept)), list(compress(offsets, kept))
            keys, values, headers = (list(compress(column, kept)) for column in (keys, values, headers))
        self.deltas.append((batch, times, offsets))
        self.keys += keys
        self.values += values
        self.headers += headers
        self.count += len(values)

    def offsets(self) -> memoryview:
        """The offset of each row."""
        made = array("q")
        for batch, _, offsets in self.deltas:
            base = batch.base_offset
            made.extend([base + (delta >> 1) for delta in offsets])
        return memoryview(made)

    def timestamps(self) -> memoryview:
        """The time of each row."""
        made = array("q")
        for batch, times, _ in self.deltas:
            base = batch.base_timestamp
            if batch.append_time:
                made.extend([signed(batch.max_timestamp)] * len(times))
            else:
                made.extend([signed(base + (delta >> 1 ^ -(delta & 1))) for delta in times])
        return memoryview(made)


class PlainColumns(Columns):
    """Columns that are made when they are asked for; `get` of keys, values and headers needs none of them."""

    __slots__ = ("_rows",)

    def __init__(self, rows: PlainRows, runs: list[Run], next_offset: int) -> None:
        self._rows = rows
        self.count = rows.count
        self.keys = column_of(rows.keys)
        self.values = column_of(rows.values)
        self.raw_headers = column_of(rows.headers) if rows.with_headers else None
        self.runs = runs
        self.next_offset = next_offset

    def __getattr__(self, name: str) -> memoryview:
        """Make `offsets` or `timestamps`, whose places are empty until then."""
        if name == "offsets":
            self.offsets = self._rows.offsets()
            return self.offsets
        if name == "timestamps":
            self.timestamps = self._rows.timestamps()
            return self.timestamps
        raise AttributeError(f"columns have no {name}")


def column_of(values: list[bytes | None]) -> BinaryColumn:
    """What can be used as one."""
    column: Any = ListColumn(values)
    return column  # type: ignore[no-any-return]


def plain_columns(found: Survey, from_offset: int, up_to: int, with_headers: bool) -> Columns:
    """The rows of the batches that were found; columns that nobody asks for cost nothing."""
    rows = PlainRows(with_headers)
    runs: list[Run] = []
    for batch in found.batches:
        note_run(runs, rows.count, batch)
        rows.add(batch, from_offset, up_to)
    return PlainColumns(rows, runs, found.next_offset)


def are_headers(data: bytes | None) -> bool:
    """Whether headers fill these bytes."""
    try:
        decode_headers(data or BROKEN)
    except CorruptRecordError:
        return False
    return True


def signed(number: int) -> int:
    """The lowest 64 bits as a number with a sign."""
    return ((number + SIGN) & MASK64) - SIGN


def zigzag(number: int) -> int:
    """The number as it is coded."""
    return (number << 1) ^ (number >> 63)
