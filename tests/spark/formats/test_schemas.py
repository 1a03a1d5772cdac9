"""Avro and Protocol Buffers, as their own libraries write them."""

from __future__ import annotations

import io
import json
import struct
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from fastavro import parse_schema, schemaless_writer
from google.protobuf import descriptor_pb2, timestamp_pb2
from google.protobuf.descriptor_pb2 import FieldDescriptorProto as Field
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.errors import ConfigError
from ottla.spark.formats.avro import Avro
from ottla.spark.formats.protobuf import Protobuf

MOMENT = datetime(2020, 1, 2, 3, 4, 5, 678_000, UTC)
INNER = {"type": "record", "name": "Inner", "fields": [{"name": "x", "type": "int"}]}
ORDER = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "note", "type": ["null", "string"]},
        {"name": "inner", "type": INNER},
        {"name": "again", "type": {"type": "array", "items": "Inner"}},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["A", "B"]}},
        {"name": "counts", "type": {"type": "map", "values": "long"}},
        {"name": "either", "type": ["int", "long"]},
        {"name": "uuid", "type": {"type": "string", "logicalType": "uuid"}},
    ],
}
ROW = {
    "id": 7,
    "note": None,
    "inner": {"x": 1},
    "again": [{"x": 2}],
    "price": Decimal("1.25"),
    "at": MOMENT,
    "day": date(2020, 1, 2),
    "kind": "B",
    "counts": {"a": 1},
    "either": 5,
    "uuid": "12345678-1234-5678-1234-567812345678",
}


def avro_bytes(row: Any) -> bytes:
    stream = io.BytesIO()
    schemaless_writer(stream, parse_schema(json.loads(json.dumps(ORDER))), row)
    return stream.getvalue()


def test_avro_records_are_columns() -> None:
    avro = Avro(json.dumps(ORDER))
    decoded = avro.decode(pa.array([avro_bytes(ROW), None], pa.binary()))
    assert decoded.values.to_pylist() == [ROW | {"counts": [("a", 1)]}, None]
    assert not decoded.errors
    assert avro.kind.field("either").type == pa.int64()


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=40), st.integers(0, 70))
def test_whatever_the_bytes_a_row_is_a_value_or_an_error(noise: bytes, at: int) -> None:
    good = avro_bytes(ROW)
    decoded = Avro(json.dumps(ORDER)).decode(pa.array([good, good[:at] + noise, good], pa.binary()))
    assert decoded.values[0].is_valid
    assert decoded.values[2].is_valid
    assert decoded.values[1].is_valid != (1 in decoded.errors)
    found = message(good[:at] + noise)
    assert found.values[1].is_valid != (1 in found.errors)


@pytest.mark.parametrize(
    ("schema", "sentence"),
    [
        ('["int", "string"]', "cannot be a column: it has several types"),
        ('"null"', "the Avro type null cannot be a column"),
        ('{"type": "record"}', "is not an Avro schema"),
        ("[", "is not an Avro schema"),
        ('{"type": "map"}', "is not an Avro schema: it has no 'values' where there must be one"),
        ('{"type": "recod"}', "is not an Avro schema: there is no type {'type': 'recod'}"),
        ('{"type": "bytes", "logicalType": "decimal"}', "is not an Avro schema: it has no 'precision'"),
        ('{"type": "bytes", "logicalType": "decimal", "precision": 99}', "is not an Avro schema: precision should be"),
        (
            '{"type":"record","name":"L","fields":[{"name":"next","type":["null","L"]}]}',
            "the Avro type L cannot be a column: it contains itself",
        ),
    ],
)
def test_an_invalid_schema_for_columns_is_a_one_line_error(schema: str, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        Avro(schema)


def field(name: str, number: int, kind: Any, **more: Any) -> Field:
    return Field(name=name, number=number, type=kind, **{"label": Field.LABEL_OPTIONAL, **more})


def descriptors(syntax: str = "proto3") -> bytes:
    """Return the output of `protoc --include_imports -o` for a small file."""
    own = descriptor_pb2.FileDescriptorProto(name="shop.proto", package="shop", syntax=syntax)
    own.dependency.append("google/protobuf/timestamp.proto")
    order = own.message_type.add(name="Order")
    inner = own.message_type.add(name="Inner")
    inner.field.append(field("x", 1, Field.TYPE_INT32))
    kind = own.enum_type.add(name="Kind")
    for number, name in enumerate(("UNKNOWN", "NEW")):
        kind.value.add(name=name, number=number)
    entry = order.nested_type.add(name="CountsEntry", options=descriptor_pb2.MessageOptions(map_entry=True))
    entry.field.extend([field("key", 1, Field.TYPE_STRING), field("value", 2, Field.TYPE_INT64)])
    order.field.extend(
        [
            field("id", 1, Field.TYPE_INT64),
            field("name", 2, Field.TYPE_STRING),
            field("tags", 3, Field.TYPE_STRING, label=Field.LABEL_REPEATED),
            field("inner", 4, Field.TYPE_MESSAGE, type_name=".shop.Inner"),
            field("at", 5, Field.TYPE_MESSAGE, type_name=".google.protobuf.Timestamp"),
            field("kind", 6, Field.TYPE_ENUM, type_name=".shop.Kind"),
            field("counts", 7, Field.TYPE_MESSAGE, type_name=".shop.Order.CountsEntry", label=Field.LABEL_REPEATED),
            field("big", 8, Field.TYPE_UINT64),
        ]
    )
    files = descriptor_pb2.FileDescriptorSet()
    timestamp_pb2.DESCRIPTOR.CopyToProto(files.file.add())
    files.file.append(own)
    data: bytes = files.SerializeToString()
    return data


def message(data: bytes) -> Any:
    return Protobuf(descriptors(), "shop.Order").decode(pa.array([b"", data], pa.binary()))


def test_messages_are_columns() -> None:
    order = Protobuf(descriptors(), "shop.Order")
    one = order.message(id=7, tags=["a"], inner={"x": 1}, at=MOMENT, kind=1, counts={"k": 2}, big=2**64 - 1)
    values = message(one.SerializeToString()).values.to_pylist()
    assert values[0] == dict.fromkeys(values[0]) | {"tags": [], "counts": []}
    assert values[1] == {
        **{"id": 7, "name": None, "tags": ["a"], "inner": {"x": 1}, "at": MOMENT},
        **{"kind": "NEW", "counts": [("k", 2)], "big": Decimal(2**64 - 1)},
    }


def test_bytes_that_are_no_message_are_an_error() -> None:
    decoded = message(b"\xff\xff")
    assert decoded.values.to_pylist()[1] is None
    assert decoded.errors[1].startswith("not a message shop.Order: ")


@pytest.mark.parametrize(
    ("data", "name", "sentence"),
    [
        (
            descriptors(),
            "shop.Oder",
            "no message 'shop.Oder'; its messages are: .*shop.Order, shop.Inner; did you mean 'shop.Order'",
        ),
        (b"\xff\xff", "shop.Order", "the descriptor set cannot be read: .*; make it with `protoc"),
    ],
)
def test_a_wrong_descriptor_is_a_one_line_error(data: bytes, name: str, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        Protobuf(data, name)


REGISTRY = struct.pack(">xI", 7)
"""The header that serializers of a schema registry write in front of a value."""


def test_the_header_of_a_schema_registry_is_reported_and_not_skipped() -> None:
    avro = Avro(json.dumps(ORDER)).decode(pa.array([REGISTRY + avro_bytes(ROW)], pa.binary()))
    proto = Protobuf(descriptors(), "shop.Order").decode(pa.array([REGISTRY + b"\0" + b"\x08\x07"], pa.binary()))
    for found, size in ((avro, 5), (proto, 6)):
        assert found.values.to_pylist() == [None]
        assert (
            f"; its first {size} bytes are the header of a schema registry's serializer (schema 7)" in found.errors[0]
        )


@pytest.mark.parametrize("data", [b"", b"\0", REGISTRY, REGISTRY + b"\xff", b"\1" + REGISTRY[1:] + avro_bytes(ROW)])
def test_no_header_is_reported_if_the_rest_cannot_be_read(data: bytes) -> None:
    (error,) = Avro(json.dumps(ORDER)).decode(pa.array([data], pa.binary())).errors.values()
    assert "registry" not in error
