"""Control records, which mark the ends of transactions."""

from __future__ import annotations

from enum import IntEnum

from ottla.errors import CorruptRecordError
from ottla.model import Buffer
from ottla.records import raw
from ottla.records.headers import read_sized


class ControlType(IntEnum):
    ABORT = 0
    COMMIT = 1


def control_type(records: Buffer) -> ControlType | None:
    """Return the type of the first control record of a batch; None for types that do not end transactions.

    `records` has the bytes after the batch's header; control batches are not compressed.
    """
    return control_record(records)[0]


def control_record(records: Buffer) -> tuple[ControlType | None, bytes | None]:
    """Return the type as `end_of` does, and the value of that record."""
    kind, value = control_pair(records)
    return ControlType(kind) if kind in (ControlType.ABORT, ControlType.COMMIT) else None, value


def control_pair(records: Buffer) -> tuple[int, bytes | None]:
    """Return the type as a number, and the value of a control batch's first record."""
    return control_pairs(records, 1)[0]


def control_pairs(records: Buffer, count: int) -> list[tuple[int, bytes | None]]:
    """Return type and value of the first `count` records, which have no headers."""
    pairs = []
    end, position = len(records), 0
    for _ in range(count):
        _, position = raw.read_varint(records, position, end)
        _, position = raw.read_varint(records, position + 1, end)
        _, position = raw.read_varint(records, position, end)
        key, position = read_sized(records, position, end)
        if key is None or len(key) < 4:
            raise CorruptRecordError(f"the key of a control record must have 4 bytes or more, this one is {key!r}")
        value, position = read_sized(records, position, end)
        pairs.append((raw.int16(key, 2), value))
        position += 1  # the number of headers
    return pairs
