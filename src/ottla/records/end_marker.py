"""The control record that ends a transaction in a partition, and its batch."""

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
"""Version, and the type: commit or abort."""
VALUE = Struct(">hi")
"""Version, and epoch of the coordinator."""
VERSION = 0


class EndMarker(NamedTuple):
    """The result of a transaction, and the coordinator's epoch."""

    type: ControlType
    coordinator_epoch: int


def encode_end_marker(producer_id: int, producer_epoch: int, marker: EndMarker, timestamp: int) -> bytes:
    """Return the complete batch, with base offset 0."""
    builder = BatchBuilder()
    builder.append(timestamp, KEY.pack(VERSION, marker.type), VALUE.pack(VERSION, marker.coordinator_epoch))
    batch = builder.build(producer_id, producer_epoch, transactional=True)
    header = parse_header(batch)
    return seal(header._replace(attributes=CONTROL | TRANSACTIONAL), memoryview(batch)[HEADER_BYTES:])


def decode_end_marker(data: Buffer, position: int, header: BatchHeader) -> EndMarker | None:
    """Return the marker in the control batch at `position`; None if it was compacted, or ends no transaction."""
    if not header.count:
        return None
    records = memoryview(data)[position + HEADER_BYTES : position + header.size_bytes]
    kind, value = control_record(records)
    if kind is None:
        return None
    if value is None or len(value) < VALUE.size:
        raise CorruptRecordError(f"invalid value {value!r} of an end marker: expected {VALUE.size} bytes")
    return EndMarker(kind, VALUE.unpack_from(value)[1])


def end_markers(data: Buffer, headers: Iterable[BatchHeader]) -> list[EndMarker | None]:
    """Return a marker for each batch in `data`, None for data batches."""
    markers = []
    position = 0
    for header in headers:
        markers.append(decode_end_marker(data, position, header) if header.is_control else None)
        position += header.size_bytes
    return markers
