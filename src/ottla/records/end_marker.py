"""The control record that ends a transaction in a partition, and the batch that it travels in."""

from __future__ import annotations

from collections.abc import Iterable
from struct import Struct
from typing import NamedTuple

from ottla.errors import CorruptRecordError
from ottla.model import Buffer
from ottla.records.batch import CONTROL, HEADER_BYTES, TRANSACTIONAL, BatchHeader, parse_header, seal
from ottla.records.builder import BatchBuilder
from ottla.records.control import ControlType, control_record

KEY = Struct(">hh")
"""Version, how the transaction ended."""
VALUE = Struct(">hi")
"""Version, epoch of the coordinator that ended it."""
VERSION = 0


class EndMarker(NamedTuple):
    """How a transaction ended, and who says so."""

    type: ControlType
    coordinator_epoch: int


def encode_end_marker(producer_id: int, producer_epoch: int, marker: EndMarker, timestamp: int) -> bytes:
    """The whole batch, from base offset 0."""
    builder = BatchBuilder()
    builder.append(timestamp, KEY.pack(VERSION, marker.type), VALUE.pack(VERSION, marker.coordinator_epoch))
    batch = builder.build(producer_id, producer_epoch, transactional=True)
    header = parse_header(batch)
    return seal(header._replace(attributes=CONTROL | TRANSACTIONAL), memoryview(batch)[HEADER_BYTES:])


def decode_end_marker(data: Buffer, position: int, header: BatchHeader) -> EndMarker | None:
    """The marker in the control batch at `position`; None where it was compacted away, or ends no transaction."""
    if not header.count:
        return None
    records = memoryview(data)[position + HEADER_BYTES : position + header.size_bytes]
    kind, value = control_record(records)
    if kind is None:
        return None
    if value is None or len(value) < VALUE.size:
        raise CorruptRecordError(
            f"the value of a transaction's end must have {VALUE.size} bytes, this one is {value!r}"
        )
    return EndMarker(kind, VALUE.unpack_from(value)[1])


def end_markers(data: Buffer, headers: Iterable[BatchHeader]) -> list[EndMarker | None]:
    """One for each of the batches that `data` is made of, None where it is data."""
    markers = []
    position = 0
    for header in headers:
        markers.append(decode_end_marker(data, position, header) if header.is_control else None)
        position += header.size_bytes
    return markers
