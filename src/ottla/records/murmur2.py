"""The partitioner hash of Kafka's clients: murmur2, bit for bit as in Java's client."""

from __future__ import annotations

from typing import Any

from ottla.model import Buffer
from ottla.records import raw
from ottla.records.binary_column import BinaryColumn

SEED = 0x9747B28C
FACTOR = 0x5BD1E995
MASK = 0xFFFF_FFFF
POSITIVE = 0x7FFF_FFFF


def murmur2(data: Buffer) -> int:
    """Return the hash of `data`, as a signed 32-bit number like Java's int."""
    value = hash_of(raw.pointer(memoryview(data)), 0, len(data))
    return value - 0x1_0000_0000 if value > POSITIVE else value


def partition_for(key: bytes, partitions: int) -> int:
    """Return the partition of `key` among `partitions`."""
    if partitions < 1:
        raise ValueError(f"a topic with {partitions} partitions has none for a key")
    return (hash_of(raw.pointer(key), 0, len(key)) & POSITIVE) % partitions


def partitions_for(keys: BinaryColumn, partitions: int) -> memoryview:
    """Return the partition of each key as int32; -1 for None."""
    if partitions < 1:
        raise ValueError(f"a topic with {partitions} partitions has none for a key")
    chosen = memoryview(raw.allocate(4 * keys.count)).cast("i")
    fill(keys, partitions, chosen)
    return chosen


def fill(keys: BinaryColumn, partitions: int, chosen: memoryview) -> None:
    """Write the partition of each key to `chosen`."""
    octets = raw.pointer(keys.octets)
    for row in range(keys.count):
        if keys.null_count and not keys.bits[row >> 3] >> (row & 7) & 1:
            chosen[row] = -1
        else:
            start = keys.bounds[row]
            chosen[row] = (hash_of(octets, start, keys.bounds[row + 1] - start) & POSITIVE) % partitions


def hash_of(data: Any, start: int, size: int) -> int:
    """Return the unsigned hash of `size` bytes."""
    value = SEED ^ size
    position = start
    stop = start + size - 3
    while position < stop:
        word = data[position] | data[position + 1] << 8 | data[position + 2] << 16 | data[position + 3] << 24
        word = word * FACTOR & MASK
        value = (value * FACTOR & MASK) ^ ((word ^ word >> 24) * FACTOR & MASK)
        position += 4
    rest = start + size - position
    if rest == 3:
        value ^= data[position + 2] << 16
    if rest >= 2:
        value ^= data[position + 1] << 8
    if rest >= 1:
        value = (value ^ data[position]) * FACTOR & MASK
    value = (value ^ value >> 13) * FACTOR & MASK
    return value ^ value >> 15
