"""Rows as PostgreSQL's COPY has them in its binary form: of each field its length and its bytes, the highest first.

Column by column, for that is how Arrow has them: first how long each row becomes, then where it begins, then its fields.
"""

from __future__ import annotations

from typing import NamedTuple

from ottla.model import Buffer
from ottla.records import raw

HEADER = b"PGCOPY\n\xff\r\n\x00" + bytes(8)
"""The signature, no flags, nothing more."""
TRAILER = b"\xff\xff"
LENGTH_BYTES = 4
COUNT_BYTES = 2
NULL = -1
"""The length of what is null."""


class BinaryField(NamedTuple):
    """A column, laid out as Arrow lays it out, with the lowest byte first."""

    width: int
    """Bytes of each value; 0 where `bounds` says it."""
    first: int
    """Which value is the first row's."""
    octets: Buffer
    bounds: memoryview
    """int32: value i is `octets[bounds[i]:bounds[i + 1]]`; empty where all are equally long."""
    bits: Buffer
    """Bit i is not set where value i is null; empty where nothing is."""


def encode(fields: list[BinaryField], count: int) -> bytearray:
    """The first `count` rows."""
    places = memoryview(bytearray(8 * count)).cast("q")
    for field in fields:
        measure(field.width, field.first, field.bounds, field.bits, places)
    rows = raw.allocate(begin(places))
    count_fields(len(fields), places, rows)
    for field in fields:
        fill(field.width, field.first, field.octets, field.bounds, field.bits, places, rows)
    return rows


def measure(width: int, first: int, bounds: memoryview, bits: Buffer, places: memoryview) -> None:
    """Add what this column takes in each row."""
    nulls = len(bits) > 0
    for row in range(len(places)):
        at = first + row
        places[row] += LENGTH_BYTES
        if not nulls or bits[at >> 3] >> (at & 7) & 1:
            places[row] += width if width else bounds[at + 1] - bounds[at]


def begin(places: memoryview) -> int:
    """Turn what each row takes into where its first field begins; returns what all take."""
    end = 0
    for row in range(len(places)):
        size = places[row]
        places[row] = end + COUNT_BYTES
        end += COUNT_BYTES + size
    return end


def count_fields(fields: int, places: memoryview, rows: bytearray) -> None:
    """Begin each row with how many there are."""
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
    """Write this column's fields, and where the next one's go."""
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
