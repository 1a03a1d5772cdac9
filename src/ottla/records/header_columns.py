"""The headers of many records as columns: keys, values, and the bounds of each record."""

from __future__ import annotations

from typing import NamedTuple

from ottla.records import raw
from ottla.records.binary_column import BinaryColumn
from ottla.records.decoder import BinaryWriter


class HeaderColumns(NamedTuple):
    """Record i has the headers from `bounds[i]` up to `bounds[i + 1]` of `keys` and `values`."""

    bounds: memoryview
    """int32 (format "i"), one more than the number of records."""
    keys: BinaryColumn
    values: BinaryColumn


def split_headers(raw_headers: BinaryColumn) -> HeaderColumns:
    """Return the headers of records, as made by `decode`, as columns."""
    bounds = memoryview(raw.allocate(4 * (raw_headers.count + 1))).cast("i")
    total = count_headers(raw_headers, bounds)
    size = len(raw_headers.data)
    keys, values = BinaryWriter(total, size // 2), BinaryWriter(total, size // 2)
    fill_headers(raw_headers, bounds, keys, values)
    return HeaderColumns(bounds, keys.column(total), values.column(total))


def count_headers(raw_headers: BinaryColumn, bounds: memoryview) -> int:
    """Write the bounds of each record's headers; return the total number of headers."""
    data = raw.pointer(raw_headers.octets)
    total = 0
    for row in range(raw_headers.count):
        bounds[row] = total
        count, _ = raw.read_varint(data, raw_headers.bounds[row], raw_headers.bounds[row + 1])
        total += count
    bounds[raw_headers.count] = total
    return total


def fill_headers(raw_headers: BinaryColumn, bounds: memoryview, keys: BinaryWriter, values: BinaryWriter) -> None:
    """Write all keys and values; `decode` has checked them."""
    data = raw.pointer(raw_headers.octets)
    for row in range(raw_headers.count):
        stop = raw_headers.bounds[row + 1]
        _, position = raw.read_varint(data, raw_headers.bounds[row], stop)
        for at in range(bounds[row], bounds[row + 1]):
            size, position = raw.read_varint(data, position, stop)
            assert 0 <= size <= stop - position, "decode let wrong headers pass"
            keys.add(at, data, position, size)
            size, position = raw.read_varint(data, position + size, stop)
            assert -1 <= size <= stop - position, "decode let wrong headers pass"
            values.add(at, data, position, size)
            position += size if size > 0 else 0
