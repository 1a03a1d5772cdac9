"""A record batch built record by record, for the producer."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.errors import ErrorCode, error_for
from ottla.model import Buffer, Header
from ottla.records import raw
from ottla.records.batch import HEADER_BYTES, TRANSACTIONAL, BatchHeader, make_true, new_header, seal, write_header
from ottla.records.compression import Codec, compress
from ottla.records.headers import as_bytes, encode_headers

FIRST_BYTES = 1024
"""The initial memory of a builder without a given buffer; it doubles."""
MAX_BATCH_BYTES = 0x7FFF_FFFF
MAX_TIMESTAMP = 0x7FFF_FFFF_FFFF_FFFF
NO_HEADERS = b"\x00"


class BatchBuilder:
    """Collects records up to `max_bytes` (uncompressed), and builds a batch.

     Records are written immediately, after space for the header, into `buffer` as long as it suffices. Compression and
    CRC are done by `build`, which may be called again.
    """

    def __init__(
        self,
        codec: Codec = Codec.NONE,
        level: int | None = None,
        max_bytes: int = 16384,
        buffer: bytearray | None = None,
    ) -> None:
        self.codec = codec
        self.level = level
        self.max_bytes = max_bytes
        self.count = 0
        self.size_bytes = HEADER_BYTES
        self.base_timestamp = -1
        self.max_timestamp = -1
        self.buffer = raw.allocate(FIRST_BYTES) if buffer is None else buffer

    def append(self, timestamp: int, key: Buffer | None, value: Buffer | None, headers: Sequence[Header] = ()) -> bool:
        """Add a record, or return false if it does not fit; an empty builder accepts a record of any size."""
        key_bytes = as_bytes(key, "the key") if key is not None and type(key) is not bytes else key
        value_bytes = as_bytes(value, "the value") if value is not None and type(value) is not bytes else value
        tail = encode_headers(headers) if headers else NO_HEADERS
        if timestamp < -1:
            raise ValueError(f"a timestamp of {timestamp} ms lies before 1970; Kafka has none below 0, -1 means none")
        if timestamp > MAX_TIMESTAMP:
            raise OverflowError(f"a timestamp of {timestamp} ms takes more than 64 bits")
        delta = timestamp - self.base_timestamp if self.count else 0
        key_size = len(key_bytes) if key_bytes is not None else 0
        value_size = len(value_bytes) if value_bytes is not None else 0
        tail_size = len(tail)
        body_size = 1 + raw.varint_size(self.count) + key_size + value_size + tail_size
        body_size += 1 if 0 <= delta < 64 else raw.varint_size(delta)
        body_size += raw.varint_size(key_size) if key_bytes is not None else 1
        body_size += raw.varint_size(value_size) if value_bytes is not None else 1
        start = self.size_bytes
        end = start + raw.varint_size(body_size) + body_size
        if end > self.max_bytes and self.count:
            return False
        if end > len(self.buffer):
            self.grow(end)
        target = raw.octets(self.buffer)
        at = raw.write_varint(target, start, body_size)
        target[at] = 0
        # What most records have there is one byte, written as it is: calls are what costs where this is not compiled.
        if 0 <= delta < 64:
            target[at + 1] = 2 * delta
            at += 2
        else:
            at = raw.write_varint(target, at + 1, delta)
        at = raw.write_varint(target, at, self.count)
        if key_bytes is not None:
            at = raw.write_varint(target, at, key_size)
            raw.put(target, at, key_bytes, key_size)
            at += key_size
        else:
            target[at] = 1  # the varint of -1
            at += 1
        if value_bytes is not None:
            at = raw.write_varint(target, at, value_size)
            raw.put(target, at, value_bytes, value_size)
            at += value_size
        else:
            target[at] = 1  # the varint of -1
            at += 1
        raw.put(target, at, tail, tail_size)
        if not self.count:
            self.base_timestamp = self.max_timestamp = timestamp
        elif timestamp > self.max_timestamp:
            self.max_timestamp = timestamp
        self.count += 1
        self.size_bytes = end
        return True

    def grow(self, end: int) -> None:
        """Make space up to `end`."""
        if end > MAX_BATCH_BYTES:
            raise error_for(ErrorCode.MESSAGE_TOO_LARGE, f"a record makes its batch {end} bytes long, beyond 2 GiB")
        self.buffer += bytes(max(end, min(2 * len(self.buffer), self.max_bytes)) - len(self.buffer))

    def build(
        self,
        producer_id: int = -1,
        producer_epoch: int = -1,
        base_sequence: int = -1,
        transactional: bool = False,
    ) -> bytes:
        """Return the complete batch, with base offset 0; the broker assigns its offsets."""
        header = self.header(producer_id, producer_epoch, base_sequence, transactional)
        with memoryview(self.buffer) as view, view[HEADER_BYTES : self.size_bytes] as records:
            return seal(header, records if self.codec is Codec.NONE else compress(self.codec, records, self.level))

    def build_in_place(
        self, producer_id: int, producer_epoch: int, base_sequence: int, transactional: bool
    ) -> memoryview | bytes:
        """Return the batch without a copy if it is not compressed: the builder's memory, which is the batch from then on."""
        if self.codec is not Codec.NONE:
            return self.build(producer_id, producer_epoch, base_sequence, transactional)
        batch = memoryview(self.buffer)[: self.size_bytes]
        write_header(batch, self.header(producer_id, producer_epoch, base_sequence, transactional))
        make_true(batch)
        return batch

    def header(self, producer_id: int, producer_epoch: int, base_sequence: int, transactional: bool) -> BatchHeader:
        """Return the header of the batch."""
        assert self.count, "a batch has at least one record"
        return new_header(
            attributes=self.codec | (TRANSACTIONAL if transactional else 0),
            count=self.count,
            base_timestamp=self.base_timestamp,
            max_timestamp=self.max_timestamp,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=base_sequence,
        )
