"""Batches in a row that need no second look, as a start after a crash finds them nearly everywhere.

Each begins with the offset at which the one before it ended, is whole by its CRC, of the same leader epoch, and part of no
transaction. The first that is otherwise ends the run: `verified_walk` looks at that one by itself. Works on bytes in memory.
"""

from __future__ import annotations

from typing import Any

from ottla.model import Buffer
from ottla.records import raw
from ottla.records.batch import (
    CODEC_MASK,
    CONTROL,
    HEADER_BYTES,
    MAGIC,
    PREFIX_BYTES,
    TRANSACTIONAL,
    BatchHeader,
    parse_header,
)
from ottla.records.compression import Codec
from ottla.records.crc32c import crc32c
from ottla.storage.producers.producer_entry import REMEMBERED

LAST_CODEC = int(Codec.ZSTD)
LATER = CONTROL | TRANSACTIONAL
MASK32 = 0xFFFF_FFFF
MOST_OFFSET = 0x7FFF_FFFF_0000_0000
"""Limit for base offsets, so that the last offset of a batch does not exceed 64 bits."""


class Recent:
    """The latest batches of one producer in a run: all that is remembered of it."""

    __slots__ = ("epoch", "positions")

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.positions: list[int] = []
        """Their positions in memory."""


class BatchRun:
    """The last run that was found, and what its batches leave behind in an index and with producers."""

    __slots__ = (
        "bytes_since_entry",
        "entries",
        "epoch",
        "index_interval",
        "max_timestamp",
        "max_timestamp_offset",
        "next_offset",
        "producers",
        "producers_from",
        "recent",
        "stop",
    )

    def __init__(self, index_interval: int) -> None:
        self.index_interval = index_interval
        self.epoch = -2
        """The leader epoch of the batches; none until the caller sets it."""
        self.producers_from = 0
        """Producers know of the batches before this offset."""
        self.recent: dict[int, Recent] = {}
        self.continue_from(0, -1, 0)

    def continue_from(self, bytes_since_entry: int, max_timestamp: int, max_timestamp_offset: int) -> None:
        """Continue after other batches, with the state of their index."""
        self.bytes_since_entry = bytes_since_entry
        self.max_timestamp = max_timestamp
        self.max_timestamp_offset = max_timestamp_offset

    def walk(self, data: Buffer, position: int, expected: int, below: int) -> bool:
        """Return True if the bytes at a position of a file start with a run that has `expected` as its first offset.

        After that, `stop` is the end of the run in the file, and `next_offset` the offset after it, at most `below`. `entries` are those of the two
        indexes: last offset and position of a batch, the largest timestamp so far and its offset.
        """
        self.entries: list[tuple[int, int, int, int]] = []
        self.producers: list[BatchHeader] = []
        if self.epoch < -1 or expected > MOST_OFFSET:
            return False
        octets = raw.pointer(data)
        end = len(data)
        at = 0
        self.recent = {}
        while at + HEADER_BYTES <= end:
            size = self.fitting(octets, at, end - at, expected, below)
            if not size or crc32c(data[at + 21 : at + size]) != raw.int32(octets, at + 17) & MASK32:
                break
            if expected >= self.producers_from and not self.remember(octets, at):
                break
            self.add_batch(octets, at, size, position + at, expected)
            expected += raw.int32(octets, at + 23) + 1
            at += size
        self.stop = position + at
        self.next_offset = expected
        self.producers = [parse_header(data, at) for each in self.recent.values() for at in each.positions]
        return at > 0

    def fitting(self, octets: Any, at: int, room: int, expected: int, below: int) -> int:
        """Return the size of the batch at `at` if its header continues the run, else 0."""
        size = raw.int32(octets, at + 8) + PREFIX_BYTES
        attributes = raw.int16(octets, at + 21)
        last_delta = raw.int32(octets, at + 23)
        count = raw.int32(octets, at + 57)
        if size < HEADER_BYTES or size > room or octets[at + 16] != MAGIC:
            return 0
        if attributes & LATER or attributes & CODEC_MASK > LAST_CODEC or count < 0 or count - 1 > last_delta:
            return 0
        if last_delta < 0 or expected + last_delta >= below:
            return 0
        return size if raw.int64(octets, at) == expected and raw.int32(octets, at + 12) == self.epoch else 0

    def remember(self, octets: Any, at: int) -> bool:
        """Keep the batch among the latest of its producer, if it has one; not behind the end of an epoch."""
        producer_id = raw.int64(octets, at + 43)
        if producer_id < 0:
            return True
        epoch = raw.int16(octets, at + 51)
        found = self.recent.get(producer_id)
        if found is None:
            found = Recent(epoch)
            self.recent[producer_id] = found
        if found.epoch != epoch:
            return False
        found.positions.append(at)
        if len(found.positions) > REMEMBERED:
            del found.positions[0]
        return True

    def add_batch(self, octets: Any, at: int, size: int, position: int, base_offset: int) -> None:
        """Add a batch to the state, as `IndexSet.add` does."""
        last_offset = base_offset + raw.int32(octets, at + 23)
        timestamp = raw.int64(octets, at + 35)
        if timestamp > self.max_timestamp:
            self.max_timestamp = timestamp
            self.max_timestamp_offset = last_offset
        if self.bytes_since_entry > self.index_interval:
            self.entries.append((last_offset, position, self.max_timestamp, self.max_timestamp_offset))
            self.bytes_since_entry = 0
        self.bytes_since_entry += size
