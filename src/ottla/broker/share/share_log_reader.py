"""Reads record batches for share groups: their offsets, those that were aborted, and their bytes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

from ottla.broker.state_machines.log_slices import read_slice
from ottla.coordination.share.events import AcquiredRange, ClosedOffsetRange, FetchedRecords
from ottla.records.batch import BatchHeader, iter_headers
from ottla.records.control import ControlType
from ottla.records.end_marker import decode_end_marker
from ottla.storage.log import Log
from ottla.storage.segments.segment_list import READER_LOCK

CHUNK_BYTES = 256 * 1024
"""The size of one read. A fetch usually acquires few of the records that its size limit allows."""


class LogRecords(Struct, frozen=True):
    """The batches that were read."""

    fetched: FetchedRecords
    batches: tuple[memoryview, ...]
    """The bytes of each batch in `fetched.batches`."""
    size_bytes: int

    def select(self, acquired: Iterable[AcquiredRange]) -> bytes | memoryview:
        """Return the batches that have any of the acquired records."""
        ranges = sorted((each.first_offset, each.last_offset) for each in acquired)
        found: list[memoryview] = []
        index = 0
        for offsets, data in zip(self.fetched.batches, self.batches, strict=True):
            while index < len(ranges) and ranges[index][1] < offsets.first_offset:
                index += 1
            if index < len(ranges) and ranges[index][0] <= offsets.last_offset:
                found.append(data)
        return found[0] if len(found) == 1 else b"".join(found)


def read_records(log: Log, offset: int, max_bytes: int, max_records: int, *, committed: bool) -> LogRecords | None:
    """Read from an offset on, at least one batch, until there are enough bytes or records; None if there are none.

    Raise KafkaError if the offset is outside of the log, or the log cannot be read.
    """
    end = log.last_stable_offset if committed else log.high_watermark
    offsets: list[ClosedOffsetRange] = []
    batches: list[memoryview] = []
    aborted: list[ClosedOffsetRange] = []
    position, size = offset, 0
    while position < end and size < max_bytes and position - offset < max_records:
        limit, is_first = min(CHUNK_BYTES, max_bytes - size), not offsets
        with READER_LOCK:
            if committed:
                chunk, ended = log.read_committed(position, limit, min_one=is_first)
            else:
                chunk, ended = log.read(position, limit, min_one=is_first, up_to=end), []
        if chunk is None:
            break
        data = read_slice(chunk)
        headers = list(iter_headers(data))
        if not headers:
            break
        view = memoryview(data)
        for place, header in headers:
            offsets.append(ClosedOffsetRange(header.base_offset, header.next_offset - 1))
            batches.append(view[place : place + header.size_bytes])
        if committed:
            producers = [(each.first_offset, each.producer_id) for each in ended]
            aborted += find_aborted_batches(data, headers, producers)
        size += len(data)
        position = headers[-1][1].next_offset
    if not offsets:
        return None
    return LogRecords(FetchedRecords(offset, tuple(offsets), tuple(aborted)), tuple(batches), size)


def find_aborted_batches(
    data: bytes, headers: Sequence[tuple[int, BatchHeader]], aborted: Sequence[tuple[int, int]]
) -> list[ClosedOffsetRange]:
    """Return the batches of aborted transactions, and the control batches. `aborted` has first offsets and producer ids."""
    waiting = sorted(aborted, reverse=True)
    producers: set[int] = set()
    found: list[ClosedOffsetRange] = []
    for position, header in headers:
        last_offset = header.next_offset - 1
        while waiting and waiting[-1][0] <= last_offset:
            producers.add(waiting.pop()[1])
        if header.is_control:
            marker = decode_end_marker(data, position, header)
            if marker is not None and marker.type is ControlType.ABORT:
                producers.discard(header.producer_id)
        elif not (header.is_transactional and header.producer_id in producers):
            continue
        found.append(ClosedOffsetRange(header.base_offset, last_offset))
    return found
