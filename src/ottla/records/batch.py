"""The header of a record batch (format 2), and operations on a batch that do not need its records.

 The CRC covers everything from the attributes on. Base offset and leader epoch precede it, so that a broker can set
them and write the batch otherwise unchanged.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from struct import Struct
from typing import NamedTuple

from ottla.errors import CorruptRecordError, ErrorCode, KafkaError, error_for
from ottla.model import Buffer, TimestampType
from ottla.records.compression import Codec
from ottla.records.crc32c import crc32c

HEADER = Struct(">qiibIhiqqqhii")
HEADER_BYTES = HEADER.size
PREFIX = Struct(">qi")
"""Base offset and length: the bytes needed to find the next batch."""
PREFIX_BYTES = PREFIX.size
LENGTH_FIELD = slice(8, PREFIX_BYTES)
"""The number of bytes after this field."""
MAGIC = 2
CRC_POSITION = 17
MAGIC_POSITION = 16
"""The position of the format version, the same in all formats."""
ATTRIBUTES_POSITION = 21
"""The first byte that the CRC covers."""
FLAGS_POSITION = 22
"""The low byte of the attributes, which contains all used bits."""
MAX_TIMESTAMP_POSITION = 35
PRODUCER_POSITION = 43
"""Producer id, epoch and base sequence."""
CODEC_MASK = 0x07
LOG_APPEND_TIME = 0x08
TRANSACTIONAL = 0x10
CONTROL = 0x20
DELETE_HORIZON = 0x40
Writable = bytearray | memoryview

_INT16 = Struct(">h")
_INT32 = Struct(">i")
_INT64 = Struct(">q")
_UINT32 = Struct(">I")
_LEADER_EPOCH = Struct(">qii")
_PRODUCER = Struct(">qhi")


class BatchHeader(NamedTuple):
    """The 61 bytes before the records."""

    base_offset: int
    length: int
    """The number of bytes after this field."""
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    count: int  # type: ignore[assignment]  # tuple has a method of this name

    @property
    def codec(self) -> Codec:
        """The compression codec; raises CorruptRecordError for an unknown number."""
        return codec_of(self.attributes)

    @property
    def timestamp_type(self) -> TimestampType:
        return TimestampType.LOG_APPEND_TIME if self.attributes & LOG_APPEND_TIME else TimestampType.CREATE_TIME

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & TRANSACTIONAL)

    @property
    def is_control(self) -> bool:
        """True if this is a control batch, such as the end of a transaction."""
        return bool(self.attributes & CONTROL)

    @property
    def has_delete_horizon(self) -> bool:
        """True if the base timestamp is the delete horizon of tombstones (KIP-534)."""
        return bool(self.attributes & DELETE_HORIZON)

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def size_bytes(self) -> int:
        """The size of the batch with its header."""
        return self.length + PREFIX.size


def codec_of(attributes: int) -> Codec:
    """Return the codec of a batch's attributes."""
    number = attributes & CODEC_MASK
    if number > Codec.ZSTD:
        raise CorruptRecordError(f"a record batch names compression codec {number}; the last one there is, is 4 (zstd)")
    return Codec(number)


def parse_header(data: Buffer, position: int = 0) -> BatchHeader:
    """Return the header at `position`, unchecked; `verify` checks it."""
    if position + HEADER_BYTES > len(data):
        raise CorruptRecordError(f"a batch header takes {HEADER_BYTES} bytes, {len(data) - position} are left")
    return BatchHeader._make(HEADER.unpack_from(data, position))


def iter_headers(data: Buffer, position: int = 0) -> Iterator[tuple[int, BatchHeader]]:
    """Yield each complete batch from `position` on with its position; an incomplete one at the end is ignored."""
    while (size := size_at(data, position)) and position + size <= len(data):
        header = parse_header(data, position)
        check_magic(header, position)
        yield position, header
        position += size


def size_at(data: Buffer, position: int) -> int:
    """Return the size of the batch at `position`, which may be incomplete; 0 if even its length is."""
    if position + PREFIX.size > len(data):
        return 0
    length: int = PREFIX.unpack_from(data, position)[1]
    if length < HEADER_BYTES - PREFIX.size:
        raise CorruptRecordError(f"the batch at byte {position} says its length is {length}, less than its header")
    return length + PREFIX.size


def check_magic(header: BatchHeader, position: int) -> None:
    """Reject other formats than 2, which have other fields."""
    if header.magic != MAGIC:
        raise CorruptRecordError(
            f"the batch at byte {position} has format {header.magic}: only format 2 is supported, that of Kafka 0.11 and later"
        )


def verify(data: Buffer, position: int, header: BatchHeader) -> None:
    """Check that the batch is complete, its CRC correct, and its counts possible."""
    verify_bytes(data, position, header)
    if header.last_offset_delta < 0 or not 0 <= header.count <= header.last_offset_delta + 1:
        raise CorruptRecordError(
            f"the batch at byte {position} counts {header.count} records in {header.last_offset_delta + 1} offsets"
        )


def verify_bytes(data: Buffer, position: int, header: BatchHeader) -> None:
    """Check that the batch is complete, and its CRC correct."""
    check_magic(header, position)
    end = position + header.size_bytes
    if header.size_bytes < HEADER_BYTES or end > len(data):
        raise CorruptRecordError(f"the batch at byte {position} ends at byte {end}, the data at {len(data)}")
    header.codec  # noqa: B018 - raises for a codec that does not exist
    actual = crc32c(memoryview(data)[position + ATTRIBUTES_POSITION : end])
    if actual != header.crc:
        raise CorruptRecordError(
            f"the batch at byte {position} has CRC {actual:#010x}, its header says {header.crc:#010x}"
        )


def stamp(data: Writable, position: int, base_offset: int, leader_epoch: int) -> None:
    """Set base offset and leader epoch of a batch; the CRC does not cover them."""
    length = PREFIX.unpack_from(data, position)[1]
    _LEADER_EPOCH.pack_into(data, position, base_offset, length, leader_epoch)


def stamp_append_time(data: Writable, position: int, header: BatchHeader, now_ms: int) -> BatchHeader:
    """Set the timestamp of all records of a verified batch to `now_ms` (LogAppendTime), and update the CRC."""
    attributes = header.attributes | LOG_APPEND_TIME
    _INT16.pack_into(data, position + ATTRIBUTES_POSITION, attributes)
    _INT64.pack_into(data, position + MAX_TIMESTAMP_POSITION, now_ms)
    crc = crc32c(memoryview(data)[position + ATTRIBUTES_POSITION : position + header.size_bytes])
    _UINT32.pack_into(data, position + CRC_POSITION, crc)
    return header._replace(attributes=attributes, max_timestamp=now_ms, crc=crc)


def verify_all(data: Buffer, *, from_client: bool = True) -> list[BatchHeader]:
    """Return the headers of the batches in `data`, which must all be complete, correct and valid for an append."""
    found = list(iter_headers(data))
    end = sum(header.size_bytes for _, header in found)
    if end != len(data):
        raise CorruptRecordError(f"{len(data) - end} bytes after the last whole batch are part of none")
    for position, header in found:
        verify_bytes(data, position, header)
        check_produced(header, from_client)
    return [header for _, header in found]


def stamp_all(
    data: Writable,
    headers: Iterable[BatchHeader],
    base_offset: int,
    leader_epoch: int,
    *,
    append_time_ms: int | None = None,
) -> list[BatchHeader]:
    """Assign offsets from `base_offset` on to verified batches; return their new headers.

    `append_time_ms` is for topics with LogAppendTime.
    """
    stamped = []
    position = 0
    for header in headers:
        stamp(data, position, base_offset, leader_epoch)
        if append_time_ms is not None:
            header = stamp_append_time(data, position, header, append_time_ms)
        stamped.append(header._replace(base_offset=base_offset, leader_epoch=leader_epoch))
        base_offset += header.last_offset_delta + 1
        position += header.size_bytes
    return stamped


def check_produced(header: BatchHeader, from_client: bool) -> None:
    """Check rules for appended batches, which do not apply to batches compacted later.

    The error is not CORRUPT_MESSAGE, which clients retry: the client sent exactly these bytes.
    """
    if header.last_offset_delta < 0 or header.count != header.last_offset_delta + 1:
        raise invalid_record_error(f"{header.count} records cannot fill {header.last_offset_delta + 1} offsets")
    if not from_client:
        return
    if header.base_offset:
        raise invalid_record_error(f"the batch begins at offset {header.base_offset}: expected 0 from a producer")
    if header.is_control:
        raise invalid_record_error("control records are written by brokers, not by producers")
    if header.producer_id < 0:
        if header.is_transactional:
            raise invalid_record_error("the batch is part of a transaction and has no producer id")
    elif header.base_sequence < 0 or header.producer_epoch < 0:
        raise invalid_record_error(
            f"producer {header.producer_id} sent epoch {header.producer_epoch}, base sequence {header.base_sequence};"
            " both begin at 0"
        )


def invalid_record_error(message: str) -> KafkaError:
    """Return the error for an undamaged batch that a producer must not send."""
    return error_for(ErrorCode.INVALID_RECORD, message)


def new_header(
    *,
    count: int,
    base_timestamp: int,
    max_timestamp: int,
    attributes: int = 0,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
) -> BatchHeader:
    """Return the header of a batch without offsets: base offset 0, no leader epoch, CRC and length not set."""
    return BatchHeader(
        0, 0, -1, MAGIC, 0, attributes, count - 1, base_timestamp, max_timestamp,
        producer_id, producer_epoch, base_sequence, count,
    )  # fmt: skip


def behind_header(records: Buffer) -> memoryview:
    """Return `records` in new memory, with space before them for `write_header`."""
    return memoryview(bytearray().join((bytes(HEADER_BYTES), records)))


def write_header(data: Writable, header: BatchHeader) -> None:
    """Write a header before the records, with the correct length; the CRC is not set yet."""
    HEADER.pack_into(data, 0, *header)
    _INT32.pack_into(data, PREFIX.size - 4, len(data) - PREFIX.size)


def set_producer(
    data: Writable, producer_id: int, producer_epoch: int, base_sequence: int, *, transactional: bool
) -> None:
    """Set producer id, epoch and base sequence of a batch, and update the CRC."""
    header = parse_header(data)
    attributes = header.attributes | TRANSACTIONAL if transactional else header.attributes & ~TRANSACTIONAL
    _INT16.pack_into(data, ATTRIBUTES_POSITION, attributes)
    _PRODUCER.pack_into(data, PRODUCER_POSITION, producer_id, producer_epoch, base_sequence)
    make_true(data)


def make_true(data: Writable) -> None:
    """Set the CRC of a complete batch."""
    with memoryview(data) as view, view[ATTRIBUTES_POSITION:] as covered:
        _UINT32.pack_into(data, CRC_POSITION, crc32c(covered))


def seal(header: BatchHeader, records: Buffer) -> bytes:
    """Return the complete batch: header with length and CRC, and `records`, compressed as the header says."""
    head = bytearray(HEADER.pack(*header))
    _INT32.pack_into(head, PREFIX.size - 4, HEADER_BYTES - PREFIX.size + len(records))
    _UINT32.pack_into(head, CRC_POSITION, crc32c(records, crc32c(memoryview(head)[ATTRIBUTES_POSITION:])))
    return b"".join((head, records))
