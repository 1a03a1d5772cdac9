"""Write columns in Arrow's layout as Avro, without a Python object for each value; compiled.

A node writes the value of one row of a column, with one Avro type. A row with a value that does not fit, such as null in
a field that is not nullable, is written by the caller's function for dicts, which raises the error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ottla.errors import SerializationError
from ottla.records import raw
from ottla.schemas.avro_writer import Output

MAX_BYTES = 0x7FFF_FFFF
MAX_ENTRIES = 64
"""Larger maps are left to the writer of dicts: the time to compare their keys is quadratic."""
MAX_FLOAT = 3.4028234e38


class ColumnNode:
    """The values of a column. `bits` is its validity, empty without nulls; `first` is the bit of the first row."""

    __slots__ = ("bits", "first", "has_nulls")

    def __init__(self, bits: Any, first: int) -> None:
        self.bits = bits
        self.first = first
        self.has_nulls = len(bits) > 0

    def is_null(self, row: int) -> bool:
        if not self.has_nulls:
            return False
        bit = self.first + row
        return not self.bits[bit >> 3] >> (bit & 7) & 1

    def write(self, out: Output, row: int) -> bool:
        """Write the value; return False, with undefined output, if it does not fit."""
        return False


class ConstantNode(ColumnNode):
    """Writes the same bytes for each row: null, or the default of a field without a column."""

    __slots__ = ("data",)

    def __init__(self, data: bytes) -> None:
        ColumnNode.__init__(self, b"", 0)
        self.data = data

    def write(self, out: Output, row: int) -> bool:
        out.add_bytes(self.data)
        return True


class OptionalNode(ColumnNode):
    """Writes a union of null and another type. The positions of both in the union are given."""

    __slots__ = ("inner", "null_branch", "value_branch")

    def __init__(self, inner: ColumnNode, null_branch: int, value_branch: int) -> None:
        self.inner = inner
        ColumnNode.__init__(self, self.inner.bits, self.inner.first)
        self.null_branch = null_branch
        self.value_branch = value_branch

    def write(self, out: Output, row: int) -> bool:
        if self.is_null(row):
            if self.null_branch < 0:
                return False
            out.add_number(self.null_branch)
            return True
        out.add_number(self.value_branch)
        return self.inner.write(out, row)


class BooleanNode(ColumnNode):
    """Writes bits."""

    __slots__ = ("octets",)

    def __init__(self, bits: Any, first: int, octets: Any) -> None:
        ColumnNode.__init__(self, bits, first)
        self.octets = octets

    def write(self, out: Output, row: int) -> bool:
        if self.is_null(row):
            return False
        bit = self.first + row
        out.add_octet(self.octets[bit >> 3] >> (bit & 7) & 1)
        return True


class NumberNode(ColumnNode):
    """Writes int and long: numbers of 64 bits, multiplied or divided for moments in another unit."""

    __slots__ = ("divisor", "factor", "high", "limit", "low", "numbers")

    def __init__(self, bits: Any, first: int, numbers: Any, width: int, factor: int, divisor: int) -> None:
        ColumnNode.__init__(self, bits, first)
        self.numbers = numbers
        self.low = -(1 << (width - 1))
        self.high = -1 - self.low
        self.factor = factor
        self.divisor = divisor
        self.limit = 0x7FFF_FFFF_FFFF_FFFF // factor

    def write(self, out: Output, row: int) -> bool:
        if self.is_null(row):
            return False
        value = self.numbers[row]
        if self.divisor > 1:
            value //= self.divisor
        elif self.factor > 1:
            if not -self.limit <= value <= self.limit:
                return False
            value *= self.factor
        if not self.low <= value <= self.high:
            return False
        out.add_number(value)
        return True


class FloatNode(ColumnNode):
    """Writes float and double."""

    __slots__ = ("is_wide", "numbers")

    def __init__(self, bits: Any, first: int, numbers: Any, is_wide: bool) -> None:
        ColumnNode.__init__(self, bits, first)
        self.numbers = numbers
        self.is_wide = is_wide

    def write(self, out: Output, row: int) -> bool:
        if self.is_null(row):
            return False
        value = self.numbers[row]
        if self.is_wide:
            out.add_double(value)
            return True
        if not -MAX_FLOAT <= value <= MAX_FLOAT and value - value == 0.0:  # not infinite, and a number
            return False
        out.add_float(value)
        return True


class BytesNode(ColumnNode):
    """Writes string and bytes; with a `size` a fixed type, without a length."""

    __slots__ = ("bounds", "data", "octets", "size")

    def __init__(self, bits: Any, first: int, bounds: Any, octets: Any, size: int) -> None:
        ColumnNode.__init__(self, bits, first)
        self.bounds = bounds
        self.octets = octets
        self.data = raw.pointer(octets)
        self.size = size

    def write(self, out: Output, row: int) -> bool:
        if self.is_null(row):
            return False
        start = self.bounds[row]
        size = self.bounds[row + 1] - start
        if self.size < 0:
            out.add_number(size)
        elif size != self.size:
            return False
        out.add_slice(self.data, start, size)
        return True

    def has_duplicate(self, start: int, stop: int) -> bool:
        """Return True if two of the rows are equal."""
        for row in range(start + 1, stop):
            size = self.bounds[row + 1] - self.bounds[row]
            for other in range(start, row):
                if self.bounds[other + 1] - self.bounds[other] != size:
                    continue
                index = 0
                while index < size and self.data[self.bounds[row] + index] == self.data[self.bounds[other] + index]:
                    index += 1
                if index == size:
                    return True
        return False


class DecimalNode(ColumnNode):
    """Writes decimals, which Arrow has as little-endian numbers of `width` bytes; with a `size` as a fixed type."""

    __slots__ = ("data", "octets", "size", "width")

    def __init__(self, bits: Any, first: int, octets: Any, width: int, size: int) -> None:
        ColumnNode.__init__(self, bits, first)
        self.octets = octets
        self.data = raw.pointer(octets)
        self.width = width
        self.size = size

    def write(self, out: Output, row: int) -> bool:
        if self.is_null(row):
            return False
        start = self.width * row
        sign = 0xFF if self.data[start + self.width - 1] >= 0x80 else 0
        size = self.significant(start, sign)
        if self.size < 0:
            out.add_number(size)
        elif size > self.size:
            return False
        else:
            for _ in range(self.size - size):
                out.add_octet(sign)
        for index in range(size):
            out.add_octet(self.data[start + size - 1 - index])
        return True

    def significant(self, start: int, sign: int) -> int:
        """Return the number of bytes, the same as fastavro's: a power of two has a byte for its sign."""
        size = self.width
        while size > 1 and self.data[start + size - 1] == sign and self.data[start + size - 2] >> 7 == sign & 1:
            size -= 1
        if sign and size < self.width and self.data[start + size - 1] == 0x80:
            for index in range(size - 1):
                if self.data[start + index] != 0:
                    return size
            size += 1
        return size


class EnumNode(ColumnNode):
    """Writes the symbols of a dictionary by their numbers; -1 marks those that the enum does not have."""

    __slots__ = ("count", "indices", "mapping")

    def __init__(self, bits: Any, first: int, indices: Any, mapping: Any) -> None:
        ColumnNode.__init__(self, bits, first)
        self.indices = indices
        self.mapping = mapping
        self.count = len(mapping)

    def write(self, out: Output, row: int) -> bool:
        if self.is_null(row):
            return False
        index = self.indices[row]
        if not 0 <= index < self.count or self.mapping[index] < 0:
            return False
        out.add_number(self.mapping[index])
        return True


class ListNode(ColumnNode):
    """Writes arrays. The items of row i are those from `bounds[i] - base` to `bounds[i + 1] - base`."""

    __slots__ = ("base", "bounds", "item")

    def __init__(self, bits: Any, first: int, bounds: Any, item: ColumnNode) -> None:
        ColumnNode.__init__(self, bits, first)
        self.bounds = bounds
        self.base = bounds[0]
        self.item = item

    def write(self, out: Output, row: int) -> bool:
        if self.is_null(row):
            return False
        start = self.bounds[row] - self.base
        stop = self.bounds[row + 1] - self.base
        if stop > start:
            out.add_number(stop - start)
            for index in range(start, stop):
                if not self.item.write(out, index):
                    return False
        out.add_octet(0)
        return True


class MapNode(ColumnNode):
    """Writes maps, with the bounds of a list."""

    __slots__ = ("base", "bounds", "key", "value")

    def __init__(self, bits: Any, first: int, bounds: Any, key: BytesNode, value: ColumnNode) -> None:
        ColumnNode.__init__(self, bits, first)
        self.bounds = bounds
        self.base = bounds[0]
        self.key = key
        self.value = value

    def write(self, out: Output, row: int) -> bool:
        if self.is_null(row):
            return False
        start = self.bounds[row] - self.base
        stop = self.bounds[row + 1] - self.base
        if stop - start > MAX_ENTRIES or self.key.has_duplicate(start, stop):
            return False
        if stop > start:
            out.add_number(stop - start)
            for index in range(start, stop):
                if not self.key.write(out, index) or not self.value.write(out, index):
                    return False
        out.add_octet(0)
        return True


class RecordNode(ColumnNode):
    """Writes the fields in the order of the schema."""

    __slots__ = ("count", "fields")

    def __init__(self, bits: Any, first: int, fields: list[ColumnNode]) -> None:
        ColumnNode.__init__(self, bits, first)
        self.fields = fields
        self.count = len(fields)

    def write(self, out: Output, row: int) -> bool:
        if self.is_null(row):
            return False
        for index in range(self.count):
            node: ColumnNode = self.fields[index]
            if not node.write(out, row):
                return False
        return True


def write_rows(
    node: ColumnNode,
    bounds: Any,
    prefix: bytes,
    start: int,
    stop: int,
    limit_bytes: int,
    encode_row: Callable[[int], bytes],
) -> tuple[int, bytearray, int]:
    """Write the rows from `start` on, each after `prefix`; return the row to continue at, the bytes and their number.

    It ends at `stop`, or behind the row that fills `limit_bytes`. `bounds` receives the bounds of the values; a null row
    has no bytes. `encode_row` returns the bytes of a row that a node does not write, with its prefix.
    """
    out = Output()
    bounds[0] = 0
    for row in range(start, stop):
        if not node.is_null(row):
            before = out.size
            out.add_bytes(prefix)
            if not node.write(out, row):
                out.size = before
                out.add_bytes(encode_row(row))
            if out.size > MAX_BYTES:
                raise SerializationError(f"the value in row {row} has more than 2 GiB; write a smaller one")
        bounds[row + 1 - start] = out.size
        if out.size >= limit_bytes:
            return row + 1, out.buffer, out.size
    return stop, out.buffer, out.size
