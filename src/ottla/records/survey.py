"""Check fetched bytes before decoding: which batches are complete, correct and requested, and how much space they need.

Records are not decoded here; compressed batches are decompressed to check their sizes.
"""

from __future__ import annotations

from typing import Any

from ottla.errors import CorruptRecordError
from ottla.model import Buffer
from ottla.records import raw
from ottla.records.aborted_transactions import AbortedTransactions
from ottla.records.batch import (
    CODEC_MASK,
    CONTROL,
    HEADER_BYTES,
    LOG_APPEND_TIME,
    MAGIC,
    PREFIX_BYTES,
    check_magic,
    parse_header,
    size_at,
    verify,
)
from ottla.records.compression import Codec, decompress
from ottla.records.crc32c import crc32c

MAX_BYTES = 0x7FFF_FFFF
"""The maximum size of one Columns, which has 32-bit offsets."""
MIN_RECORD_BYTES = 7
MAX_BASE_OFFSET = 0x7FFF_FFFF_0000_0000
"""A limit that keeps all offsets of a batch within 64 bits."""
LAST_CODEC = int(Codec.ZSTD)
MASK32 = 0xFFFF_FFFF


class Batch:
    """A batch to decode: its records are `records[start:stop]`, decompressed."""

    __slots__ = (
        "append_time",
        "base_offset",
        "base_timestamp",
        "count",
        "last_offset_delta",
        "leader_epoch",
        "max_timestamp",
        "records",
        "start",
        "stop",
    )

    records: Buffer
    start: int
    stop: int
    count: int
    base_offset: int
    last_offset_delta: int
    leader_epoch: int
    base_timestamp: int
    """An int64 like the next field, in unsigned form, so that additions wrap around as in Java and C."""
    max_timestamp: int
    append_time: bool
    """True if `max_timestamp` is the timestamp of all records."""


class Survey:
    """The batches of a part of a log, and the reason why there are no more."""

    __slots__ = ("batches", "next_offset", "rows", "size_bytes")

    def __init__(self, from_offset: int) -> None:
        self.batches: list[Batch] = []
        self.rows = 0
        self.size_bytes = 0
        self.next_offset = from_offset
        """The offset to continue at, after all checked batches, requested or not."""


def survey(
    data: Buffer,
    from_offset: int,
    up_to: int,
    check_crcs: bool,
    aborted: AbortedTransactions | None,
    limit_bytes: int,
    asked: int,
    below: int,
) -> Survey:
    """Check the complete batches of `data` up to `up_to`, or until more than MAX_BYTES would be decoded.

     The CRC does not cover base offsets: the first batch must reach `asked`, each must start after the previous one,
    and none may reach `below`. However a broker may determine its log end before it reads, as Apache Kafka does:
    batches written meanwhile start at `below` or later, without gaps before them.
    """
    found = Survey(from_offset)
    expected = 0
    view = memoryview(data)
    octets = raw.pointer(view)
    end = len(view)
    position = 0
    while position + PREFIX_BYTES <= end:
        size = raw.int32(octets, position + 8) + PREFIX_BYTES
        if size < HEADER_BYTES:
            size_at(view, position)  # raises the error
        if size > end - position:
            break
        base_offset = raw.int64(octets, position)
        if base_offset >= up_to:
            check_place(view, position, size, max(expected, asked), below)
            found.next_offset = up_to
            break
        check(view, position, size, check_crcs)
        last_offset = base_offset + raw.int32(octets, position + 23)
        beyond = last_offset >= below and (base_offset < below or base_offset > max(expected, asked))
        if base_offset < expected or beyond or last_offset < asked:
            raise misplaced_error(position, base_offset, last_offset, max(expected, asked), below)
        expected = last_offset + 1
        asked = 0
        wanted = aborted is None or not aborted.covers(parse_header(view, position), view, position)
        if wanted and last_offset >= from_offset and has_data(octets, position):
            batch = batch_at(view, position, size, limit_bytes)
            if found.size_bytes + batch.stop - batch.start > MAX_BYTES:
                break
            found.batches.append(batch)
            found.rows += batch.count
            found.size_bytes += batch.stop - batch.start
        if last_offset >= found.next_offset:
            found.next_offset = min(last_offset + 1, up_to)
        position += size
    return found


def extent(data: Buffer) -> tuple[int, int, int]:
    """Return for the complete batches in `data`, from their headers: the next offset, the last leader epoch, the record count.

    Offset and epoch are -1 if there is no batch or the epoch is unknown.
    """
    view = memoryview(data)
    octets = raw.pointer(view)
    end = len(view)
    position = 0
    next_offset = epoch = -1
    count = 0
    while position + PREFIX_BYTES <= end:
        size = raw.int32(octets, position + 8) + PREFIX_BYTES
        if size < HEADER_BYTES:
            size_at(view, position)  # raises the error
        if size > end - position:
            break
        if octets[position + 16] != MAGIC:
            check_magic(parse_header(view, position), position)  # likewise
        after = raw.int64(octets, position) + raw.int32(octets, position + 23) + 1
        if after > next_offset:
            next_offset = after
        epoch = raw.int32(octets, position + 12)
        count += raw.int32(octets, position + 57)
        position += size
    return next_offset, epoch, count


def check(view: memoryview, position: int, size: int, check_crcs: bool) -> None:
    """Check that the batch of `size` bytes at `position` matches its header, even if it is not requested."""
    octets = raw.pointer(view)
    base_offset = raw.int64(octets, position)
    last_offset_delta = raw.int32(octets, position + 23)
    count = raw.int32(octets, position + 57)
    # Same checks as `batch.verify`, which would take as long as decoding the records.
    if octets[position + 16] != MAGIC or octets[position + 22] & CODEC_MASK > LAST_CODEC or base_offset < 0:
        raise_damage(view, position)
    if base_offset > MAX_BASE_OFFSET or last_offset_delta < 0 or count < 0 or count - 1 > last_offset_delta:
        raise_damage(view, position)
    if check_crcs and crc32c(view[position + 21 : position + size]) != raw.int32(octets, position + 17) & MASK32:
        raise_damage(view, position)


def check_place(view: memoryview, position: int, size: int, expected: int, below: int) -> None:
    """Check that a batch after the requested ones has a possible offset, and skips no requested offset."""
    octets = raw.pointer(view)
    base_offset = raw.int64(octets, position)
    if base_offset > MAX_BASE_OFFSET:
        raise_damage(view, position)
    last_offset = base_offset + raw.int32(octets, position + 23)
    following = position + size
    after = raw.int64(octets, following) if following + PREFIX_BYTES <= len(view) else below
    leapt = last_offset >= below or expected <= after <= last_offset
    if base_offset < expected or (base_offset > expected and leapt):
        raise misplaced_error(position, base_offset, last_offset, expected, below)


def has_data(octets: Any, position: int) -> bool:
    """Return True if the batch at `position` has records that are not control records."""
    return not octets[position + 22] & CONTROL and raw.int32(octets, position + 57) > 0


def batch_at(view: memoryview, position: int, size: int, limit_bytes: int) -> Batch:
    """Return the batch of `size` bytes at `position`, decompressed."""
    octets = raw.pointer(view)
    attributes = octets[position + 22]
    batch = Batch()
    batch.count = raw.int32(octets, position + 57)
    batch.base_offset = raw.int64(octets, position)
    batch.last_offset_delta = raw.int32(octets, position + 23)
    batch.leader_epoch = raw.int32(octets, position + 12)
    # With a delete horizon the base timestamp is the horizon, and Kafka computes the deltas from it too (KIP-534).
    batch.base_timestamp = raw.uint64(octets, position + 27)
    batch.max_timestamp = raw.uint64(octets, position + 35)
    batch.append_time = attributes & LOG_APPEND_TIME != 0
    if attributes & CODEC_MASK == 0:
        batch.records = view
        batch.start = position + HEADER_BYTES
        batch.stop = position + size
    else:
        codec = Codec(attributes & CODEC_MASK)
        inner = decompress(codec, view[position + HEADER_BYTES : position + size], min(limit_bytes, MAX_BYTES))
        batch.records = inner
        batch.start = 0
        batch.stop = len(inner)
    if batch.count > (batch.stop - batch.start) // MIN_RECORD_BYTES:
        raise CorruptRecordError(
            f"the batch at offset {batch.base_offset} says it has {batch.count} records in "
            f"{batch.stop - batch.start} bytes"
        )
    return batch


def misplaced_error(position: int, base_offset: int, last_offset: int, expected: int, below: int) -> CorruptRecordError:
    """Return the error for a batch with impossible offsets."""
    bound = f" and below {below}" if below < MAX_BASE_OFFSET else ""
    return CorruptRecordError(
        f"the batch at byte {position} says it has the offsets {base_offset} to {last_offset}, where {expected} or more"
        f"{bound} were to come"
    )


def raise_damage(view: memoryview, position: int) -> None:
    """Raise the error for the batch at `position`."""
    header = parse_header(view, position)
    verify(view, position, header)
    raise CorruptRecordError(f"the batch at byte {position} has base offset {header.base_offset}")
