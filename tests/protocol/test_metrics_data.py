"""The encoding of metrics by OpenTelemetry, compared with Google's protobuf library, and damaged data."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from ottla.protocol.errors import MalformedError
from ottla.protocol.metrics_data import MetricKind, Point, read_metrics, write_metrics

PROTO = "opentelemetry.proto"
TYPES = {"int": 3, "fixed": 6, "bool": 8, "text": 9, "bytes": 12, "double": 1, "sfixed": 16, "uint": 13}
MESSAGES: dict[str, list[tuple[str, int, str]]] = {
    "AnyValue": [
        ("string_value", 1, "text"),
        ("bool_value", 2, "bool"),
        ("int_value", 3, "int"),
        ("double_value", 4, "double"),
        ("bytes_value", 7, "bytes"),
    ],
    "KeyValue": [("key", 1, "text"), ("value", 2, "AnyValue")],
    "Resource": [("attributes", 1, "*KeyValue")],
    "Scope": [("name", 1, "text")],
    "NumberDataPoint": [
        ("start_time_unix_nano", 2, "fixed"),
        ("time_unix_nano", 3, "fixed"),
        ("as_double", 4, "double"),
        ("as_int", 6, "sfixed"),
        ("attributes", 7, "*KeyValue"),
        ("flags", 8, "uint"),
    ],
    "Gauge": [("data_points", 1, "*NumberDataPoint")],
    "Sum": [
        ("data_points", 1, "*NumberDataPoint"),
        ("aggregation_temporality", 2, "uint"),
        ("is_monotonic", 3, "bool"),
    ],
    "Metric": [
        ("name", 1, "text"),
        ("description", 2, "text"),
        ("unit", 3, "text"),
        ("gauge", 5, "Gauge"),
        ("sum", 7, "Sum"),
        ("histogram", 9, "bytes"),
    ],
    "ScopeMetrics": [("scope", 1, "Scope"), ("metrics", 2, "*Metric")],
    "ResourceMetrics": [("resource", 1, "Resource"), ("scope_metrics", 2, "*ScopeMetrics"), ("schema_url", 3, "text")],
    "MetricsData": [("resource_metrics", 1, "*ResourceMetrics")],
}
"""Names, numbers and types of OpenTelemetry's fields; `*` marks a repeated field."""


def metrics_data() -> Any:
    """A class of the library's for the whole."""
    file = descriptor_pb2.FileDescriptorProto(name="metrics.proto", package=PROTO, syntax="proto3")
    for name, fields in MESSAGES.items():
        message = file.message_type.add(name=name)
        for field, number, kind in fields:
            made = message.field.add(name=field, number=number, label=3 if kind[0] == "*" else 1)
            if kind in TYPES:
                made.type = TYPES[kind]
            else:
                made.type, made.type_name = 11, f".{PROTO}.{kind.lstrip('*')}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{PROTO}.MetricsData"))


MetricsData = metrics_data()
POINTS = [
    Point("a.gauge", MetricKind.GAUGE, -1.5, (("key", "värde"), ("node", "1")), 0, 7),
    Point("a.gauge", MetricKind.GAUGE, 2.0, (), 0, 7),
    Point("a.sum", MetricKind.DELTA, 3.0, (), 5, 1_700_000_000_000_000_000),
    Point("b.sum", MetricKind.CUMULATIVE, 1e300, (("topic", "t" * 200),), 5, 7),
]


def test_the_library_reads_what_is_encoded_here() -> None:
    (resource,) = MetricsData.FromString(write_metrics(POINTS, {"client_rack": "r1"})).resource_metrics
    assert [(each.key, each.value.string_value) for each in resource.resource.attributes] == [("client_rack", "r1")]
    (scope,) = resource.scope_metrics
    gauge, delta, cumulative = scope.metrics
    assert [gauge.name, delta.name, cumulative.name] == ["a.gauge", "a.sum", "b.sum"]
    assert [(each.as_double, each.time_unix_nano) for each in gauge.gauge.data_points] == [(-1.5, 7), (2.0, 7)]
    first = gauge.gauge.data_points[0].attributes[0]
    assert (first.key, first.value.string_value) == ("key", "värde")
    assert (delta.sum.aggregation_temporality, delta.sum.is_monotonic) == (1, True)
    assert delta.sum.data_points[0].time_unix_nano == 1_700_000_000_000_000_000
    assert (cumulative.sum.aggregation_temporality, cumulative.sum.data_points[0].as_double) == (2, 1e300)


def test_encoded_metrics_are_decoded_unchanged() -> None:
    assert list(read_metrics(memoryview(write_metrics(POINTS, {})))) == POINTS


def test_metrics_of_the_library_are_decoded_without_unknown_fields() -> None:
    data = MetricsData()
    resource = data.resource_metrics.add(schema_url="s")
    resource.resource.attributes.add(key="rack").value.int_value = -3
    resource.resource.attributes.add(key="list").value.bytes_value = b"x"
    scope = resource.scope_metrics.add()
    scope.metrics.add(name="h", histogram=b"x")
    number = scope.metrics.add(name="falls", description="d", unit="1").sum
    number.aggregation_temporality = 2
    number.data_points.add(as_int=-5, flags=1).attributes.add(key="on").value.bool_value = True
    scope.metrics.add(name="g").gauge.data_points.add().attributes.add(key="half").value.double_value = 0.5
    assert list(read_metrics(memoryview(data.SerializeToString()))) == [
        Point("falls", MetricKind.GAUGE, -5.0, (("on", "true"), ("rack", "-3"))),
        Point("g", MetricKind.GAUGE, 0.0, (("half", "0.5"), ("rack", "-3"))),
    ]


def test_damage_is_an_error_or_other_numbers_and_never_anything_else() -> None:
    random, whole = Random(714), write_metrics(POINTS, {"client_rack": "r1"})
    for _ in range(3000):
        damaged = bytearray(whole[: random.randrange(1, len(whole) + 1)])
        for _ in range(random.randrange(3)):
            damaged[random.randrange(len(damaged))] = random.randrange(256)
        try:
            list(read_metrics(memoryview(bytes(damaged))))
        except MalformedError:
            pass


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"\x0b", "invalid wire type 3"),
        (b"\x0a\x05x", "5 bytes are announced at byte 2, 1 are left"),
        (b"\xff" * 11, "no number ends at byte 0"),
        (b"\x0a\x06\x12\x04\x12\x02\x08\x01", "1"),
    ],
)
def test_damage_is_reported_with_its_position(data: bytes, said: str) -> None:
    with pytest.raises(MalformedError, match=said):
        list(read_metrics(memoryview(data)))
