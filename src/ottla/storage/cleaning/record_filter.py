"""The hot loop of compaction: which records of a batch stay, by their keys, and their bytes one after the other.

Records are copied as they are: offsets and times in them count from the batch's, which it keeps.
"""

from __future__ import annotations

from typing import Any

from ottla.errors import CorruptRecordError
from ottla.records import raw
from ottla.storage.cleaning.key_map import KeyMap, broken_batch_error

MAX_DELTA = 0x7FFF_FFFF
"""Offsets in a batch count from its first, in 31 bits."""
FAR = 1 << 62
"""Differences of time from here on might not fit 64 bits when they are moved."""
MAX_GROWTH = 11
"""Bytes by which a record may grow when its timestamp delta changes."""


class RecordFilter:
    """Takes batches one after the other; what stays of each is in `buffer`, `size` bytes of it."""

    __slots__ = ("buffer", "kept", "keys", "latest", "size", "target", "tombstones")

    def __init__(self, keys: KeyMap) -> None:
        self.keys = keys
        self.buffer = raw.allocate(1)
        self.target = raw.octets(self.buffer)
        self.size = 0
        self.kept = 0
        self.tombstones = 0
        """How many of the records that stay have no value."""
        self.latest = 0
        """The largest timestamp of those that stay, counted from the batch's."""

    def run(self, records: Any, count: int, base_offset: int, drop_tombstones: bool) -> int:
        """Keep the last record of each key, and whatever lies behind the end of the map; how many that are.

        CorruptRecordError where the bytes are not `count` records.
        """
        data = raw.pointer(records)
        end = len(records)
        if end > len(self.buffer):
            self.buffer = raw.allocate(end)
            self.target = raw.octets(self.buffer)
        self.size = self.kept = self.tombstones = 0
        self.latest = -FAR
        position = 0
        for index in range(count):
            start = position
            size, position = raw.read_varint(data, position, end)
            if not 0 <= size <= end - position:
                raise broken_batch_error(base_offset, index)
            stop = position + size
            delta, at = raw.read_varint(data, position + 1, stop)
            offset_delta, at = raw.read_varint(data, at, stop)
            key_size, key = raw.read_varint(data, at, stop)
            if not -1 <= key_size <= stop - key:
                raise broken_batch_error(base_offset, index)
            value_size, at = raw.read_varint(data, key + (key_size if key_size > 0 else 0), stop)
            if not -1 <= value_size < stop - at or not 0 <= offset_delta <= MAX_DELTA:
                raise broken_batch_error(base_offset, index)
            position = stop
            offset = base_offset + offset_delta
            if offset < self.keys.end_offset and (
                (value_size < 0 and drop_tombstones) or not self.is_last(data, key, key_size, offset)
            ):
                continue
            raw.copy(self.target, self.size, data, start, stop - start)
            self.size += stop - start
            self.kept += 1
            self.tombstones += value_size < 0
            if delta > self.latest:
                self.latest = delta
        if position != end:
            raise CorruptRecordError(f"{end - position} bytes follow the records of the batch at offset {base_offset}")
        return self.kept

    def is_last(self, data: Any, key: int, key_size: int, offset: int) -> bool:
        """Return True if no later record has the key; a record without a key is never kept."""
        return key_size >= 0 and offset >= self.keys.last(data, key, key_size)


def shift_times(records: Any, count: int, shift: int) -> bytes | None:
    """Return the same `count` records, which are whole, with times that count from `shift` ms later or earlier.

    None where a time is too far off for that.
    """
    data = raw.pointer(records)
    end = len(records)
    out = raw.allocate(end + MAX_GROWTH * count)
    target = raw.octets(out)
    position = 0
    size = 0
    if not -FAR < shift < FAR:
        return None
    for _ in range(count):
        length, position = raw.read_varint(data, position, end)
        stop = position + length
        delta, rest = raw.read_varint(data, position + 1, stop)
        if not -FAR < delta < FAR:
            return None
        delta -= shift
        size = raw.write_varint(target, size, 1 + raw.varint_size(delta) + stop - rest)
        target[size] = data[position]
        size = raw.write_varint(target, size + 1, delta)
        raw.copy(target, size, data, rest, stop - rest)
        size += stop - rest
        position = stop
    return bytes(out[:size])
