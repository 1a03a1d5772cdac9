"""Metrics as OpenTelemetry writes them, the part of its `MetricsData` that clients of Kafka use: gauges and sums.

    MetricsData ─1─► ResourceMetrics ─2─► ScopeMetrics ─2─► Metric ─5 gauge, 7 sum─► points ─7─► attributes
                           └─1─► attributes of whoever tells

Protobuf's wire format, by hand (decision 0099): a field is a varint of number and kind, then its value. What is not known is skipped, as
protobuf wants it; what cannot be read is a MalformedError.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from itertools import groupby
from typing import NamedTuple

from ottla.protocol.errors import MalformedError

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
"""Kinds of fields, by protobuf's numbers."""
LONGEST_VARINT = 10
DOUBLE, LONG = struct.Struct("<d"), struct.Struct("<q")
SCOPE = "ottla"
Attributes = tuple[tuple[str, str], ...]
"""Names and values, by name."""


class Kind(Enum):
    """What a number is, and so what becomes of it when the next one comes."""

    GAUGE = "gauge"
    DELTA = "delta"
    """What a sum has grown by since it was last told."""
    CUMULATIVE = "cumulative"


class Point(NamedTuple):
    """One number of one metric."""

    name: str
    kind: Kind
    value: float
    attributes: Attributes = ()
    begun_ns: int = 0
    """From when on a sum was counted."""
    at_ns: int = 0


TEMPORALITIES = {1: Kind.DELTA, 2: Kind.CUMULATIVE}
NUMBERS = {kind: number for number, kind in TEMPORALITIES.items()}


# reading


def read_metrics(data: memoryview) -> Iterator[Point]:
    """Every number in it, with the attributes of its point and of its resource; histograms and the like are left out."""
    for resource_metrics in messages(data, 1):
        common = [pair for resource in messages(resource_metrics, 1) for pair in attributes_in(resource, 1)]
        for scope in messages(resource_metrics, 2):
            for metric in messages(scope, 2):
                yield from points_of(metric, common)


def points_of(metric: memoryview, common: list[tuple[str, str]]) -> Iterator[Point]:
    """The numbers of one metric."""
    name = ""
    for number, value in fields(metric):
        if number == 1:
            name = text(value)
    for number, value in fields(metric):
        if number not in (5, 7) or not isinstance(value, memoryview):
            continue
        kind = Kind.GAUGE if number == 5 else kind_of(value)
        for point in messages(value, 1):
            yield read_point(name, kind, point, common)


def kind_of(summed: memoryview) -> Kind:
    """How a sum is told; one that may fall is a gauge to whoever looks at it."""
    numbers = {number: value for number, value in fields(summed) if isinstance(value, int)}
    temporality = TEMPORALITIES.get(numbers.get(2, 0), Kind.GAUGE)
    return temporality if numbers.get(3) or temporality is Kind.DELTA else Kind.GAUGE


def read_point(name: str, kind: Kind, point: memoryview, common: list[tuple[str, str]]) -> Point:
    """A number, and what it is the number of."""
    value, begun, at = 0.0, 0, 0
    for number, raw in fields(point):
        if not isinstance(raw, bytes):
            continue
        if number == 4:
            (value,) = DOUBLE.unpack(raw)
        elif number == 6:
            value = float(LONG.unpack(raw)[0])
        elif number == 2:
            begun = int.from_bytes(raw, "little")
        elif number == 3:
            at = int.from_bytes(raw, "little")
    attributes = dict([*common, *attributes_in(point, 7)])
    return Point(name, kind, value, tuple(sorted(attributes.items())), begun, at)


def attributes_in(message: memoryview, number: int) -> Iterator[tuple[str, str]]:
    """Its attributes as text; those that are lists or the like are left out."""
    for pair in messages(message, number):
        values = {key: value for key, value in fields(pair) if isinstance(value, memoryview)}
        for kind, value in fields(values.get(2, memoryview(b""))):
            told = attribute_text(kind, value)
            if told is not None:
                yield text(values.get(1, b"")), told


def attribute_text(kind: int, value: int | bytes | memoryview) -> str | None:
    """An attribute's value, of whatever kind it is there."""
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
    """The messages that a message has in one of its fields."""
    for key, value in fields(message):
        if key == number and isinstance(value, memoryview):
            yield value


def fields(message: memoryview) -> Iterator[tuple[int, int | bytes | memoryview]]:
    """Number and value: of a varint the number, of eight or four bytes these, of a length what is there."""
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
            raise MalformedError(f"metrics: a field of kind {kind} at byte {position}, and there are none")
        if size > end - position:
            raise MalformedError(f"metrics: {size} bytes are announced at byte {position}, {end - position} are left")
        found = message[position : position + size]
        position += size
        yield tag >> 3, found if kind == BYTES else bytes(found)


def read_varint(message: memoryview, position: int) -> tuple[int, int]:
    """A number and where it ends."""
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
        raise MalformedError(f"metrics: {value} stands where there is to be a name")
    try:
        return str(value, "utf-8")
    except UnicodeDecodeError:
        raise MalformedError(f"metrics: {bytes(value[:40])!r} is no text") from None


# writing


def write_metrics(points: Iterable[Point], resource: Mapping[str, str]) -> bytes:
    """The metrics of one client, whose attributes `resource` are; numbers of one name stand together."""
    told = sorted(points, key=lambda point: (point.name, point.kind.value))
    metrics = b"".join(
        field(2, metric(name, kind, of_metric))
        for (name, kind), of_metric in groupby(told, key=lambda point: (point.name, point.kind))
    )
    scope = field(2, field(1, field(1, SCOPE.encode())) + metrics)
    return field(1, field(1, attributes(1, resource.items())) + scope)


def metric(name: str, kind: Kind, points: Iterable[Point]) -> bytes:
    """One metric with all its numbers."""
    data = b"".join(field(1, point(each)) for each in points)
    if kind is Kind.GAUGE:
        return field(1, name.encode()) + field(5, data)
    return field(1, name.encode()) + field(7, data + varint(2 << 3) + varint(NUMBERS[kind]) + varint(3 << 3) + b"\1")


def point(point: Point) -> bytes:
    begun = fixed(2, point.begun_ns.to_bytes(8, "little")) if point.begun_ns else b""
    at = fixed(3, point.at_ns.to_bytes(8, "little"))
    return begun + at + fixed(4, DOUBLE.pack(point.value)) + attributes(7, point.attributes)


def attributes(number: int, pairs: Iterable[tuple[str, str]]) -> bytes:
    return b"".join(field(number, field(1, key.encode()) + field(2, field(1, value.encode()))) for key, value in pairs)


def field(number: int, data: bytes) -> bytes:
    """A field of any length."""
    return varint(number << 3 | BYTES) + varint(len(data)) + data


def fixed(number: int, data: bytes) -> bytes:
    """A field of eight bytes."""
    return varint(number << 3 | FIXED64) + data


def varint(number: int) -> bytes:
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    found.append(number)
    return bytes(found)
