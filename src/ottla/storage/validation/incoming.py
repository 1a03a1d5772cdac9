"""Validate batches before they are appended.

One walk checks everything and creates no objects for valid batches. If any is not valid, `raise_fault` checks again, slower, and raises
the reason. The rule: a batch that the walk accepts is also accepted by the slow check.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ottla.errors import CorruptRecordError, ErrorCode, KafkaError
from ottla.model import Buffer
from ottla.records import raw
from ottla.records.batch import (
    CODEC_MASK,
    CONTROL,
    HEADER_BYTES,
    LOG_APPEND_TIME,
    MAGIC,
    PREFIX_BYTES,
    TRANSACTIONAL,
    BatchHeader,
    parse_header,
    stamp_all,
    verify_all,
)
from ottla.records.compression import Codec
from ottla.records.crc32c import crc32c
from ottla.records.end_marker import EndMarker, end_markers
from ottla.storage.log_config import LogConfig
from ottla.storage.producers.producer_entry import Origin
from ottla.storage.validation.record_check import check_batches, check_format, check_settings, needs_record_check

CLIENT = Origin.CLIENT
GZIP, LZ4, ZSTD = int(Codec.GZIP), int(Codec.LZ4), int(Codec.ZSTD)
MASK32 = 0xFFFF_FFFF
LEAST_RECORD = 7
"""Bytes of a record: its length, attributes, two deltas, three lengths of nothing."""
LAST_SHIFT = 28
"""The shift of the last byte of a 32-bit varint, with seven bits in each byte."""
EXPANSION = (1, 1032, 22, 255, 1 << 15)
"""How many times larger than itself what is compressed can be at most, by codec: gzip's longest match is 258 of 2 bits, snappy's 64 of 3
octets, lz4 adds 255 for one, zstd has 128 KiB of one octet in a block of 4."""
GZIP_BEGINS = 0x1F8B08
"""RFC 1952: two octets of every member, and deflate."""
LZ4_BEGINS = 0x04224D18
ZSTD_BEGINS = 0x28B52FFD
ZSTD_SKIPS, ANY_SKIPPED = 0x502A4D18, 0xF0FFFFFF
"""RFC 8878, 3.1.2: a frame that readers pass over; its fifth to eighth bits may be any."""
NEVER = -0x8000_0000_0000_0000
"""Earlier than any record."""


class Incoming:
    """Batches that are whole and of a form that the log takes. `stamp` gives them their offsets."""

    __slots__ = (
        "backwards",
        "claims_time",
        "identified",
        "largest",
        "latest",
        "markers",
        "octets",
        "offsets",
        "size_bytes",
        "view",
    )

    view: memoryview
    """Their bytes, which may be stamped in place."""
    size_bytes: int
    markers: Sequence[EndMarker | None]
    """One for each batch, where there may be any."""
    offsets: int
    """How many they take."""
    latest: int
    """The largest timestamp of data; NEVER where there is none."""
    largest: int
    """Bytes of the largest batch."""
    identified: bool
    """True if any batch has a producer id."""
    claims_time: bool
    """True if any batch has the timestamp type of the broker."""
    backwards: bool
    """True if the header of any batch claims that all of its records are earlier than the first."""

    def __init__(self, view: memoryview) -> None:
        self.view = view
        self.octets = raw.room(view)
        self.size_bytes = len(view)
        self.markers = ()

    def check_batches(self, from_client: bool) -> bool:
        """Return True if all batches are complete and valid, and may be appended."""
        octets = self.octets
        end = self.size_bytes
        position = 0
        self.offsets = 0
        self.latest = NEVER
        self.largest = 0
        self.identified = self.claims_time = self.backwards = False
        while position < end:
            if end - position < HEADER_BYTES:
                return False
            length = raw.int32(octets, position + 8)
            if length < HEADER_BYTES - PREFIX_BYTES or length > end - position - PREFIX_BYTES:
                return False
            if not self.check_batch(octets, position, length + PREFIX_BYTES, from_client):
                return False
            position += length + PREFIX_BYTES
        return position > 0

    def check_batch(self, octets: Any, position: int, size: int, from_client: bool) -> bool:
        """Return True if the complete batch of `size` bytes at `position` may be appended."""
        if crc32c(self.view[position + 21 : position + size]) != raw.int32(octets, position + 17) & MASK32:
            return False
        if not is_possible(octets, position):
            return False
        if from_client and not (is_a_producers(octets, position) and has_its_records(octets, position, size)):
            return False
        attributes = raw.int16(octets, position + 21)
        latest = raw.int64(octets, position + 35)
        self.offsets += raw.int32(octets, position + 23) + 1
        self.largest = max(self.largest, size)
        if not attributes & CONTROL:
            self.latest = max(self.latest, latest)
        if raw.int64(octets, position + 43) >= 0:
            self.identified = True
        if attributes & LOG_APPEND_TIME:
            self.claims_time = True
        if latest < raw.int64(octets, position + 27):
            self.backwards = True
        return True

    def headers(self) -> list[BatchHeader]:
        """Return the headers of the batches, as they are."""
        found: list[BatchHeader] = []
        position = 0
        while position < self.size_bytes:
            header = parse_header(self.view, position)
            found.append(header)
            position += header.length + PREFIX_BYTES
        return found

    def stamp(self, base_offset: int, leader_epoch: int, append_time_ms: int | None) -> None:
        """Give them the offsets from `base_offset` on, and with `append_time_ms` that for the time of their records."""
        if append_time_ms is not None:
            stamp_all(self.view, self.headers(), base_offset, leader_epoch, append_time_ms=append_time_ms)
            if self.latest != NEVER:
                self.latest = append_time_ms
            return
        octets = self.octets
        position = 0
        while position < self.size_bytes:
            raw.put_int64(octets, position, base_offset)
            raw.put_int32(octets, position + 12, leader_epoch)
            base_offset += raw.int32(octets, position + 23) + 1
            position += raw.int32(octets, position + 8) + PREFIX_BYTES


def is_possible(octets: Any, position: int) -> bool:
    """Return True if the header has only values that are possible."""
    last_delta = raw.int32(octets, position + 23)
    if octets[position + 16] != MAGIC or raw.int16(octets, position + 21) & CODEC_MASK > ZSTD:
        return False
    return last_delta >= 0 and raw.int32(octets, position + 57) - 1 == last_delta


def is_a_producers(octets: Any, position: int) -> bool:
    """Return True if a batch has the attributes that producers send."""
    attributes = raw.int16(octets, position + 21)
    if raw.int64(octets, position) != 0 or attributes & CONTROL:
        return False
    if raw.int64(octets, position + 43) < 0:
        return not attributes & TRANSACTIONAL
    return raw.int16(octets, position + 51) >= 0 and raw.int32(octets, position + 53) >= 0


def has_its_records(octets: Any, position: int, size: int) -> bool:
    """Return True if a possible batch has the number of records that it claims.

    Compressed records are not decompressed: they must start as the codec requires, and be large enough for that number.
    """
    count, codec = raw.int32(octets, position + 57), raw.int16(octets, position + 21) & CODEC_MASK
    end = position + size
    position += HEADER_BYTES
    if codec:
        factor = EXPANSION[codec]
        return count * LEAST_RECORD <= (end - position) * factor and has_codec_header(octets, position, end, codec)
    for _ in range(count):
        length = shift = 0
        byte = 0x80
        while byte & 0x80:
            if position >= end or shift > LAST_SHIFT:
                return False
            byte = octets[position]
            length |= (byte & 0x7F) << shift
            position += 1
            shift += 7
        # Zigzag: an odd number is a negative one.
        if length & 1 or length >> 1 < LEAST_RECORD - 1 or length >> 1 > end - position:
            return False
        position += length >> 1
    return position == end


def has_codec_header(octets: Any, position: int, end: int, codec: int) -> bool:
    """Return True if compressed bytes start as the codec requires; a bare snappy block may start with any byte."""
    if end - position < 4:
        return False
    first = raw.int32(octets, position) & MASK32
    if codec == GZIP:
        return first >> 8 == GZIP_BEGINS
    if codec == LZ4:
        return first == LZ4_BEGINS
    return codec != ZSTD or first == ZSTD_BEGINS or first & ANY_SKIPPED == ZSTD_SKIPS


def check_incoming(data: Buffer, config: LogConfig, origin: Origin, now_ms: int) -> Incoming:
    """Return the batches in `data`; CorruptRecordError for damaged bytes, KafkaError for what the settings refuse."""
    incoming = Incoming(make_writable(data))
    from_client = origin is CLIENT
    if (
        not incoming.check_batches(from_client)
        or incoming.largest > config.max_message_bytes
        or (incoming.claims_time and not config.timestamp_type)
    ):
        raise_fault(incoming.view, config, from_client)
    if not from_client:
        incoming.markers = end_markers(incoming.view, incoming.headers())
    elif incoming.backwards or not config.is_opaque or incoming.latest - now_ms > config.message_timestamp_after_max_ms:
        return check_records_of(incoming, config, now_ms)
    return incoming


def check_records_of(incoming: Incoming, config: LogConfig, now_ms: int) -> Incoming:
    """Return the same, as the log takes them where it looks at their records."""
    headers = incoming.headers()
    if not needs_record_check(headers, config, now_ms):
        return incoming
    found = Incoming(make_writable(check_batches(incoming.view, headers, config, now_ms)))
    if not found.check_batches(True):
        raise_fault(found.view, config, True)
    return found


def raise_fault(view: memoryview, config: LogConfig, from_client: bool) -> None:
    """Say what is wrong with batches that may not be appended."""
    check_format(view)
    octets, position = raw.room(view), 0
    for header in verify_all(view, from_client=from_client):
        check_settings(header, config)
        if from_client and not has_its_records(octets, position, header.size_bytes):
            raise KafkaError(
                ErrorCode.INVALID_RECORD,
                f"the records of the batch cannot be read: {find_false_claim(octets, position, header)}",
            )
        position += header.size_bytes
    raise CorruptRecordError(f"{len(view)} bytes of record batches are not as they must be")


def find_false_claim(octets: Any, position: int, header: BatchHeader) -> str:
    """Return the claim of a batch about its records that is wrong."""
    codec, begin = header.codec, position + HEADER_BYTES
    if codec and not has_codec_header(octets, begin, position + header.size_bytes, codec):
        return f"they are not {codec.name.lower()}, as it says"
    return f"it says that it has {header.count}, and has more or fewer"


def make_writable(data: Buffer) -> memoryview:
    """Return the bytes where they can be stamped, copied if they must be."""
    view = memoryview(data)
    return memoryview(bytearray(view)) if view.readonly else view
