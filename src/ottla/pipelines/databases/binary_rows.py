"""Encodes rows in the binary format of PostgreSQL's COPY: the length and bytes of each field, in big-endian order.

Arrow stores columns, so the encoder works column by column: it computes the length of each row, then its position, then
writes the fields.
"""

from __future__ import annotations

from typing import NamedTuple

from ottla.model import Buffer
from ottla.records import raw

HEADER = b"PGCOPY\n\xff\r\n\x00" + bytes(8)
"""The signature, no flags, and no header extension."""
TRAILER = b"\xff\xff"
LENGTH_BYTES = 4
COUNT_BYTES = 2
NULL = -1
"""The length of a null field."""


class BinaryField(NamedTuple):
    """A column in Arrow's memory layout, in little-endian order."""

    width: int
    """Bytes of each value; 0 if `bounds` has the lengths."""
    first: int
    """The index of the first row's value."""
    octets: Buffer
    bounds: memoryview
    """int32: value i is `octets[bounds[i]:bounds[i + 1]]`; empty for columns of a fixed width."""
    bits: Buffer
    """The validity bitmap: bit i is clear if value i is null; empty if no value is null."""


def encode(fields: list[BinaryField], count: int) -> bytearray:
    """Return the first `count` rows."""
    places = memoryview(bytearray(8 * count)).cast("q")
    for field in fields:
        measure(field.width, field.first, field.bounds, field.bits, places)
    rows = raw.allocate(begin(places))
    count_fields(len(fields), places, rows)
    for field in fields:
        fill(field.width, field.first, field.octets, field.bounds, field.bits, places, rows)
    return rows


def measure(width: int, first: int, bounds: memoryview, bits: Buffer, places: memoryview) -> None:
    """Add this column's size to the size of each row."""
    nulls = len(bits) > 0
    for row in range(len(places)):
        at = first + row
        places[row] += LENGTH_BYTES
        if not nulls or bits[at >> 3] >> (at & 7) & 1:
            places[row] += width if width else bounds[at + 1] - bounds[at]


def begin(places: memoryview) -> int:
    """Replace each row's size by the position of its first field; return the total size."""
    end = 0
    for row in range(len(places)):
        size = places[row]
        places[row] = end + COUNT_BYTES
        end += COUNT_BYTES + size
    return end


def count_fields(fields: int, places: memoryview, rows: bytearray) -> None:
    """Write the number of fields at the start of each row."""
    target = raw.octets(rows)
    for row in range(len(places)):
        target[places[row] - 2] = fields >> 8
        target[places[row] - 1] = fields & 0xFF


def fill(
    width: int,
    first: int,
    octets: Buffer,
    bounds: memoryview,
    bits: Buffer,
    places: memoryview,
    rows: bytearray,
) -> None:
    """Write this column's fields, and advance each row's position to the next field."""
    source = raw.pointer(octets)
    target = raw.octets(rows)
    nulls = len(bits) > 0
    for row in range(len(places)):
        at = first + row
        place = places[row]
        if nulls and not bits[at >> 3] >> (at & 7) & 1:
            raw.put_int32(target, place, NULL)
            places[row] = place + LENGTH_BYTES
            continue
        size = width if width else bounds[at + 1] - bounds[at]
        raw.put_int32(target, place, size)
        place += LENGTH_BYTES
        if width:
            for octet in range(width):
                target[place + octet] = source[at * width + width - 1 - octet]
        else:
            raw.copy(target, place, source, bounds[at], size)
        places[row] = place + size
