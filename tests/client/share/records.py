"""Record batches and acquired records for tests."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from ottla.client.share.state.acknowledgements import ShareTopicPartition
from ottla.client.share.state.acquired_records import CompletedShareFetch
from ottla.protocol.messages.share_fetch import AcquiredRecords
from ottla.records.batch import stamp
from ottla.records.builder import BatchBuilder

PARTITION = ShareTopicPartition(UUID(int=1), "t", 0)


def batch(base_offset: int, count: int = 3) -> bytes:
    """Records with consecutive offsets; the value is the offset."""
    builder = BatchBuilder(max_bytes=1_000_000)
    for n in range(count):
        builder.append(1000, None, b"%d" % (base_offset + n))
    data = bytearray(builder.build())
    stamp(data, 0, base_offset, 0)
    return bytes(data)


def completed(*batches: bytes, acquired: list[tuple[int, int, int]], **settings: Any) -> CompletedShareFetch:
    """Return a fetch with these batches and acquired ranges: first offset, last offset, delivery count."""
    ranges = [AcquiredRecords(*each) for each in acquired]
    return CompletedShareFetch(PARTITION, 1, 0, b"".join(batches), ranges, **settings)
