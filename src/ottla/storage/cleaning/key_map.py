"""The offset of the last record of each key, in memory of a fixed size, by which compaction decides.

A key is a hash of 16 bytes, as in Kafka's cleaner, and its entry has 24 bytes with the offset. The hash has a random key, so that
no producer can create collisions. The system provides the memory page by page as entries are added, and `close` returns it.
"""

from __future__ import annotations

import mmap
from typing import Any

from ottla.errors import CorruptRecordError
from ottla.records import raw

ENTRY_BYTES = 24
MAX_DELTA = 0x7FFF_FFFF
"""Offsets in a batch count from its first, in 31 bits."""
LEAST_SLOTS = 4


class KeyMap:
    """Keys and offsets of the records below `end_offset`, entries in an open table (linear probing)."""

    __slots__ = ("end_offset", "memory", "room", "salt", "seed", "size", "slots", "words")

    def __init__(self, size_bytes: int, seed: bytes) -> None:
        """At most `size_bytes` of memory; `seed` is 16 bytes by chance."""
        self.slots = max(size_bytes // ENTRY_BYTES, LEAST_SLOTS)
        self.room = self.slots * 3 // 4
        """Keys that are taken: in a fuller table searches get long."""
        self.size = 0
        self.end_offset = 0
        """The keys of all records below are known, from where the reading began."""
        self.seed = int.from_bytes(seed[:8], "big")
        self.salt = int.from_bytes(seed[8:16], "big")
        self.memory = mmap.mmap(-1, self.slots * ENTRY_BYTES)
        self.words: Any = memoryview(self.memory).cast("Q")

    def close(self) -> None:
        """Give the memory back to the system; the map is not used any more."""
        self.words = memoryview(bytearray(8)).cast("Q")
        self.memory.close()

    def add_keys(self, records: Any, count: int, base_offset: int, from_offset: int) -> bool:
        """Add the keys of a batch's `records` from `from_offset` on.

        Return False if the table is full: `end_offset` is then the offset of the first record that was not added.
        Raise CorruptRecordError if the bytes are not records.
        """
        data = raw.pointer(records)
        end = len(records)
        position = 0
        for index in range(count):
            size, position = raw.read_varint(data, position, end)
            if not 0 <= size <= end - position:
                raise broken_batch_error(base_offset, index)
            stop = position + size
            _, at = raw.read_varint(data, position + 1, stop)
            offset_delta, at = raw.read_varint(data, at, stop)
            key_size, at = raw.read_varint(data, at, stop)
            if not -1 <= key_size <= stop - at or not 0 <= offset_delta <= MAX_DELTA:
                raise broken_batch_error(base_offset, index)
            offset = base_offset + offset_delta
            if key_size >= 0 and offset >= from_offset and not self.put(data, at, key_size, offset):
                self.end_offset = offset
                return False
            position = stop
        return True

    def put(self, data: Any, start: int, size: int, offset: int) -> bool:
        """Store `offset` as the last of the key at `start`; False if there is no space for a new key."""
        first, second = raw.hash_of(data, start, size, self.seed, self.salt)
        slot = self.slot_of(first, second)
        if not self.words[slot + 2]:
            if self.size >= self.room:
                return False
            self.size += 1
            self.words[slot] = first
            self.words[slot + 1] = second
        self.words[slot + 2] = offset + 1
        return True

    def last(self, data: Any, start: int, size: int) -> int:
        """Offset of the last record with the key at `start`; -1 where none was noted."""
        first, second = raw.hash_of(data, start, size, self.seed, self.salt)
        offset: int = self.words[self.slot_of(first, second) + 2]
        return offset - 1

    def slot_of(self, first: int, second: int) -> int:
        """Return the slot of a hash, used or free. The third word of an entry is its offset plus one; 0 means no entry."""
        end = self.slots * 3
        slot = first % self.slots * 3
        while self.words[slot + 2] and (self.words[slot] != first or self.words[slot + 1] != second):
            slot += 3
            if slot == end:
                slot = 0
        return slot


def broken_batch_error(base_offset: int, index: int) -> CorruptRecordError:
    """Return the error for a batch without its record number `index`."""
    return CorruptRecordError(f"record {index} of the batch at offset {base_offset} does not fit its bytes")
