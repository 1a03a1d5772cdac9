"""Record batches made by hand, so that storage is tested against the format and not against our own encoder."""

from __future__ import annotations

import gzip
import os
from collections.abc import Sequence
from pathlib import Path
from struct import Struct

from ottla.records.batch import iter_headers
from ottla.records.crc32c import crc32c
from ottla.storage.log import Log
from ottla.storage.log_config import LogConfig

HEAD = Struct(">qiibI")
BODY = Struct(">hiqqqhii")
GZIP = 1
"""The attributes of a batch with gzip compression."""
NOW = 1_700_000_000_000


def varint(value: int) -> bytes:
    """Zigzag, seven bits a byte."""
    number = (value << 1) ^ (value >> 63)
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def record(offset_delta: int, timestamp_delta: int, value: bytes) -> bytes:
    body = b"\0" + varint(timestamp_delta) + varint(offset_delta) + varint(-1) + varint(len(value)) + value + varint(0)
    return varint(len(body)) + body


def batch(
    *values: bytes,
    timestamps: Sequence[int] | None = None,
    attributes: int = 0,
    magic: int = 2,
    count: int | None = None,
) -> bytearray:
    """A batch of these values as a producer sends it; `timestamps` has one for each."""
    times = list(timestamps or [NOW + i for i in range(len(values))])
    records = b"".join(record(i, times[i] - times[0], value) for i, value in enumerate(values))
    number = len(values) if count is None else count
    if attributes & GZIP:
        records = gzip.compress(records)
    body = BODY.pack(attributes, len(values) - 1, times[0], max(times), -1, -1, -1, number) + records
    return bytearray(HEAD.pack(0, len(body) + 9, -1, magic, crc32c(body)) + body)


def sized(size: int, *, timestamp: int = NOW) -> bytearray:
    """A batch of one record and about that many bytes in all."""
    return batch(bytes(max(size - 80, 0)), timestamps=[timestamp])


def append(log: Log, *values: bytes, timestamps: Sequence[int] | None = None, now_ms: int = NOW) -> int:
    """Append a batch; its base offset."""
    return log.append(batch(*values, timestamps=timestamps), leader_epoch=0, now_ms=now_ms).base_offset


def open_log(directory: Path, config: LogConfig | None = None, **settings: object) -> Log:
    """Open a log with a fixed clock."""
    return Log.open(directory, config or LogConfig(), **{"now_ms": NOW, **settings})  # type: ignore[arg-type]


def bytes_of(log: Log, offset: int, max_bytes: int = 1 << 30) -> bytes:
    """Return the result of a read as bytes."""
    found = log.read(offset, max_bytes)
    return b"" if found is None else os.pread(found.file.fileno(), found.size, found.position)


def bases_from(log: Log, offset: int) -> list[int]:
    """The base offsets of the batches that a read returns."""
    return [header.base_offset for _, header in iter_headers(bytes_of(log, offset))]


def everything(log: Log) -> bytes:
    """All batches from the log's start on, read as a consumer reads."""
    parts = []
    offset = log.start_offset
    while part := bytes_of(log, offset):
        parts.append(part)
        offset = [header for _, header in iter_headers(part)][-1].next_offset
    return b"".join(parts)
