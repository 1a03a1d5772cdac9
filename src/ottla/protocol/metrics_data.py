"""The part of OpenTelemetry's `MetricsData` that Kafka's clients push (KIP-714): gauges and sums.

MetricsData ─1─► ResourceMetrics ─2─► ScopeMetrics ─2─► Metric ─5 gauge, 7 sum─► points ─7─► attributes
                        └─1─► attributes of the client

Protobuf's wire format is implemented here (decision 0099): a field is a varint of number and wire type, then its value.
Unknown fields are skipped, as protobuf demands; malformed data raises MalformedError.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from itertools import groupby
from typing import NamedTuple

from ottla.protocol.errors import MalformedError

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
"""Protobuf's wire types."""
LONGEST_VARINT = 10
DOUBLE, LONG = struct.Struct("<d"), struct.Struct("<q")
SCOPE = "ottla"
Attributes = tuple[tuple[str, str], ...]
"""Names and values, sorted by name."""


class MetricKind(Enum):
    """The kind of a number, which decides how it is combined with later ones."""

    GAUGE = "gauge"
    DELTA = "delta"
    """The growth of a sum since its last push."""
    CUMULATIVE = "cumulative"


class Point(NamedTuple):
    """One number of one metric."""

    name: str
    kind: MetricKind
    value: float
    attributes: Attributes = ()
    start_ns: int = 0
    """The start of the interval of a sum."""
    at_ns: int = 0


TEMPORALITIES = {1: MetricKind.DELTA, 2: MetricKind.CUMULATIVE}
NUMBERS = {kind: number for number, kind in TEMPORALITIES.items()}


# reading


def read_metrics(data: memoryview) -> Iterator[Point]:
    """Yield all numbers with the attributes of their point and resource; histograms and similar metrics are skipped."""
    for resource_metrics in messages(data, 1):
        common = [pair for resource in messages(resource_metrics, 1) for pair in attributes_in(resource, 1)]
        for scope in messages(resource_metrics, 2):
            for metric in messages(scope, 2):
                yield from points_of(metric, common)


def points_of(metric: memoryview, common: list[tuple[str, str]]) -> Iterator[Point]:
    """Yield the numbers of one metric."""
    name = ""
    for number, value in fields(metric):
        if number == 1:
            name = text(value)
    for number, value in fields(metric):
        if number not in (5, 7) or not isinstance(value, memoryview):
            continue
        kind = MetricKind.GAUGE if number == 5 else metric_kind(value)
        for point in messages(value, 1):
            yield read_point(name, kind, point, common)


def metric_kind(summed: memoryview) -> MetricKind:
    """Return the kind of a sum; a cumulative sum that may decrease is treated as a gauge."""
    numbers = {number: value for number, value in fields(summed) if isinstance(value, int)}
    temporality = TEMPORALITIES.get(numbers.get(2, 0), MetricKind.GAUGE)
    return temporality if numbers.get(3) or temporality is MetricKind.DELTA else MetricKind.GAUGE


def read_point(name: str, kind: MetricKind, point: memoryview, common: list[tuple[str, str]]) -> Point:
    """Return one number with its attributes."""
    value, started, at = 0.0, 0, 0
    for number, raw in fields(point):
        if not isinstance(raw, bytes):
            continue
        if number == 4:
            (value,) = DOUBLE.unpack(raw)
        elif number == 6:
            value = float(LONG.unpack(raw)[0])
        elif number == 2:
            started = int.from_bytes(raw, "little")
        elif number == 3:
            at = int.from_bytes(raw, "little")
    attributes = dict([*common, *attributes_in(point, 7)])
    return Point(name, kind, value, tuple(sorted(attributes.items())), started, at)


def attributes_in(message: memoryview, number: int) -> Iterator[tuple[str, str]]:
    """Yield the attributes as text; lists and similar values are skipped."""
    for pair in messages(message, number):
        values = {key: value for key, value in fields(pair) if isinstance(value, memoryview)}
        for kind, value in fields(values.get(2, memoryview(b""))):
            value_text = attribute_text(kind, value)
            if value_text is not None:
                yield text(values.get(1, b"")), value_text


def attribute_text(kind: int, value: int | bytes | memoryview) -> str | None:
    """Return an attribute's value as text, or None for an unsupported type."""
    if kind == 1 and isinstance(value, memoryview):
        return text(value)
    if kind == 2 and isinstance(value, int):
        return "true" if value else "false"
    if kind == 3 and isinstance(value, int):
        return str(value - (1 << 64) if value >> 63 else value)
    if kind == 4 and isinstance(value, bytes):
        return f"{DOUBLE.unpack(value)[0]:g}"
    return None


def messages(message: memoryview, number: int) -> Iterator[memoryview]:
    """Yield the messages in one field of a message."""
    for key, value in fields(message):
        if key == number and isinstance(value, memoryview):
            yield value


def fields(message: memoryview) -> Iterator[tuple[int, int | bytes | memoryview]]:
    """Yield number and value of each field.

    The value is an int for a varint, bytes for fixed sizes, and a view for a length-delimited field.
    """
    position, end = 0, len(message)
    while position < end:
        tag, position = read_varint(message, position)
        kind = tag & 7
        if kind == VARINT:
            value, position = read_varint(message, position)
            yield tag >> 3, value
            continue
        size = 8 if kind == FIXED64 else 4
        if kind == BYTES:
            size, position = read_varint(message, position)
        elif kind not in (FIXED64, FIXED32):
            raise MalformedError(f"metrics: invalid wire type {kind} at byte {position}")
        if size > end - position:
            raise MalformedError(f"metrics: {size} bytes are announced at byte {position}, {end - position} are left")
        found = message[position : position + size]
        position += size
        yield tag >> 3, found if kind == BYTES else bytes(found)


def read_varint(message: memoryview, position: int) -> tuple[int, int]:
    """Return a varint, and its end."""
    value = 0
    for place in range(LONGEST_VARINT):
        if position + place >= len(message):
            break
        byte = message[position + place]
        value |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            return value & 0xFFFF_FFFF_FFFF_FFFF, position + place + 1
    raise MalformedError(f"metrics: no number ends at byte {position}")


def text(value: int | bytes | memoryview) -> str:
    if isinstance(value, int):
        raise MalformedError(f"metrics: expected a name, found {value}")
    try:
        return str(value, "utf-8")
    except UnicodeDecodeError:
        raise MalformedError(f"metrics: {bytes(value[:40])!r} is not UTF-8") from None


# writing


def write_metrics(points: Iterable[Point], resource: Mapping[str, str]) -> bytes:
    """Return the metrics of one client with the attributes `resource`; numbers of one metric are grouped."""
    in_order = sorted(points, key=lambda point: (point.name, point.kind.value))
    metrics = b"".join(
        field(2, metric(name, kind, of_metric))
        for (name, kind), of_metric in groupby(in_order, key=lambda point: (point.name, point.kind))
    )
    scope = field(2, field(1, field(1, SCOPE.encode())) + metrics)
    return field(1, field(1, attributes(1, resource.items())) + scope)


def metric(name: str, kind: MetricKind, points: Iterable[Point]) -> bytes:
    """Return one metric with all its numbers."""
    data = b"".join(field(1, point(each)) for each in points)
    if kind is MetricKind.GAUGE:
        return field(1, name.encode()) + field(5, data)
    return field(1, name.encode()) + field(7, data + varint(2 << 3) + varint(NUMBERS[kind]) + varint(3 << 3) + b"\1")


def point(point: Point) -> bytes:
    start = fixed(2, point.start_ns.to_bytes(8, "little")) if point.start_ns else b""
    at = fixed(3, point.at_ns.to_bytes(8, "little"))
    return start + at + fixed(4, DOUBLE.pack(point.value)) + attributes(7, point.attributes)


def attributes(number: int, pairs: Iterable[tuple[str, str]]) -> bytes:
    return b"".join(field(number, field(1, key.encode()) + field(2, field(1, value.encode()))) for key, value in pairs)


def field(number: int, data: bytes) -> bytes:
    """Return a field with wire type 2: tag, length, data."""
    return varint(number << 3 | BYTES) + varint(len(data)) + data


def fixed(number: int, data: bytes) -> bytes:
    """Return a field of eight bytes."""
    return varint(number << 3 | FIXED64) + data


def varint(number: int) -> bytes:
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    found.append(number)
    return bytes(found)
