"""Registered Protobuf values as columns: the compiled form and its plain form read what Protobuf's own parser reads."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf import (
    descriptor_pb2,
    descriptor_pool,
    duration_pb2,
    message_factory,
    struct_pb2,
    timestamp_pb2,
    wrappers_pb2,
)
from hypothesis import given
from hypothesis import strategies as st

from ottla.records.binary_column import column_of
from ottla.schemas import column_reader, protobuf_reader
from ottla.schemas.arrow_columns import Forms
from ottla.schemas.protobuf_columns import ProtobufColumns
from tests.plain import is_compiled, plain

PLAIN = Forms(
    plain("ottla.schemas.column_reader"), plain("ottla.schemas.protobuf_reader", "ottla.schemas.column_reader")
)
COMPILED = Forms(column_reader, protobuf_reader)
FORMS = [COMPILED, PLAIN]
PREFIX = b"\0\0\0\0\1\0"
SCALARS: dict[str, Any] = {
    "double": st.floats(allow_nan=False),
    "float": st.floats(width=32, allow_nan=False),
    "int32": st.integers(-(2**31), 2**31 - 1),
    "int64": st.integers(-(2**63), 2**63 - 1),
    "uint32": st.integers(0, 2**32 - 1),
    "uint64": st.integers(0, 2**64 - 1),
    "sint32": st.integers(-(2**31), 2**31 - 1),
    "sint64": st.integers(-(2**63), 2**63 - 1),
    "fixed32": st.integers(0, 2**32 - 1),
    "fixed64": st.integers(0, 2**64 - 1),
    "sfixed32": st.integers(-(2**31), 2**31 - 1),
    "sfixed64": st.integers(-(2**63), 2**63 - 1),
    "bool": st.booleans(),
    "string": st.text(max_size=10),
    "bytes": st.binary(max_size=10),
    "Kind": st.sampled_from([0, 1, 7]),
}
TYPES = descriptor_pb2.FieldDescriptorProto


def make_class() -> Any:
    """Return a message class with a field of each type: single, optional and repeated, a map, a oneof, well-known types."""
    pool = descriptor_pool.DescriptorPool()
    for module in (timestamp_pb2, duration_pb2, struct_pb2, wrappers_pb2):
        pool.AddSerializedFile(module.DESCRIPTOR.serialized_pb)
    file = descriptor_pb2.FileDescriptorProto(name="all.proto", package="shop", syntax="proto3")
    file.dependency.extend(f"google/protobuf/{name}.proto" for name in ("timestamp", "duration", "struct", "wrappers"))
    kind = file.enum_type.add(name="Kind")
    kind.value.add(name="TEA", number=0)
    kind.value.add(name="PEN", number=7)
    message = file.message_type.add(name="All")
    inner = message.nested_type.add(name="Inner")
    inner.field.add(name="x", number=1, type=TYPES.TYPE_INT64, label=1)
    inner.field.add(name="ys", number=2, type=TYPES.TYPE_STRING, label=3)
    entry = message.nested_type.add(name="CountsEntry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, type=TYPES.TYPE_STRING, label=1)
    entry.field.add(name="value", number=2, type=TYPES.TYPE_MESSAGE, type_name=".shop.All.Inner", label=1)
    message.oneof_decl.add(name="choice")
    for number, name in enumerate(SCALARS, 1):
        add_field(message, f"one_{name}", number, name)
        add_field(message, f"maybe_{name}", number + 100, name, is_optional=True)
        add_field(message, f"many_{name}", number + 300, name, label=3)
    message_fields = {
        "inner": ".shop.All.Inner",
        "at": ".google.protobuf.Timestamp",
        "took": ".google.protobuf.Duration",
        "any": ".google.protobuf.Struct",
        "wrapped": ".google.protobuf.Int32Value",
        "again": ".shop.All",
    }
    for number, (name, kind_name) in enumerate(message_fields.items(), 50):
        message.field.add(name=name, number=number, type=TYPES.TYPE_MESSAGE, type_name=kind_name, label=1)
    message.field.add(name="inners", number=60, type=TYPES.TYPE_MESSAGE, type_name=".shop.All.Inner", label=3)
    message.field.add(name="counts", number=61, type=TYPES.TYPE_MESSAGE, type_name=".shop.All.CountsEntry", label=3)
    message.field.add(name="either", number=62, type=TYPES.TYPE_STRING, label=1, oneof_index=0)
    message.field.add(
        name="other", number=63, type=TYPES.TYPE_MESSAGE, type_name=".shop.All.Inner", label=1, oneof_index=0
    )
    for index, one in enumerate([each for each in message.field if each.proto3_optional], 1):
        message.oneof_decl.add(name=f"_{one.name}")
        one.oneof_index = index
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("shop.All"))


def add_field(message: Any, name: str, number: int, kind: str, label: int = 1, is_optional: bool = False) -> None:
    field = message.field.add(name=name, number=number, label=label, proto3_optional=is_optional)
    if kind == "Kind":
        field.type, field.type_name = TYPES.TYPE_ENUM, ".shop.Kind"
    else:
        field.type = getattr(TYPES, f"TYPE_{kind.upper()}")


ALL = make_class()
INNERS = st.fixed_dictionaries({}, optional={"x": SCALARS["int64"], "ys": st.lists(st.text(max_size=3), max_size=3)})
FIELDS: dict[str, Any] = {
    **{f"{how}_{name}": values for name, values in SCALARS.items() for how in ("one", "maybe")},
    **{f"many_{name}": st.lists(values, max_size=3) for name, values in SCALARS.items()},
    "inner": INNERS,
    "inners": st.lists(INNERS, max_size=3),
    "counts": st.dictionaries(st.text(max_size=3), INNERS, max_size=3),
    "either": st.text(max_size=3),
    "other": INNERS,
}
MESSAGES = st.lists(st.sampled_from(sorted(FIELDS)), max_size=6, unique=True).flatmap(
    lambda names: st.fixed_dictionaries({name: FIELDS[name] for name in names})
)


def decode(datas: Sequence[bytes | None], form: Any = COMPILED, **keywords: Any) -> tuple[list[Any], Any]:
    columns = ProtobufColumns(ALL.DESCRIPTOR, forms=form, **keywords)
    columns.add_writer(PREFIX, "shop.All")
    array, errors = columns.decode(column_of([data if data is None else PREFIX + data for data in datas]))
    array.validate(full=True)
    assert array.type == columns.kind
    return array.to_pylist(maps_as_pydicts="strict"), errors


def build(fields: dict[str, Any]) -> Any:
    message = ALL()
    for name, value in fields.items():
        if name == "counts":
            for key, inner in value.items():
                message.counts[key].CopyFrom(ALL.DESCRIPTOR.nested_types_by_name["Inner"]._concrete_class(**inner))
        elif name == "inners":
            for inner in value:
                message.inners.add(**inner)
        elif name in ("inner", "other"):
            getattr(message, name).SetInParent()
            getattr(message, name).MergeFrom(type(getattr(message, name))(**value))
        elif isinstance(value, list):
            getattr(message, name).extend(value)
        else:
            setattr(message, name, value)
    return message


def expected(message: Any) -> dict[str, Any]:
    """Return a message as the column has it, by the parser of Protobuf."""
    row: dict[str, Any] = {}
    for field in message.DESCRIPTOR.fields:
        value = getattr(message, field.name)
        if field.name == "counts":
            row[field.name] = {key: expected(one) for key, one in value.items()}
        elif field.is_repeated:
            row[field.name] = [one_of(field, one) for one in value]
        elif field.has_presence and not message.HasField(field.name):
            row[field.name] = None
        else:
            row[field.name] = one_of(field, value)
    return row


def one_of(field: Any, value: Any) -> Any:
    if field.enum_type is not None:
        return {0: "TEA", 7: "PEN"}.get(value, str(value))
    return expected(value) if field.message_type is not None else value


def test_the_compiled_form_is_compiled() -> None:
    assert all(map(is_compiled, COMPILED))
    assert not any(map(is_compiled, PLAIN))


@given(st.lists(MESSAGES | st.none(), max_size=3))
def test_columns_have_the_values_that_protobuf_reads(messages: list[Any]) -> None:
    built = [None if fields is None else build(fields) for fields in messages]
    datas = [None if one is None else one.SerializeToString() for one in built]

    for form in FORMS:
        rows, errors = decode(datas, form)
        assert errors == {}
        assert rows == [None if one is None else expected(one) for one in built]


@given(MESSAGES, MESSAGES)
def test_a_message_that_comes_twice_is_merged(first: Any, second: Any) -> None:
    data = build(first).SerializeToString() + build(second).SerializeToString()

    for form in FORMS:
        assert decode([data], form) == ([expected(ALL.FromString(data))], {})


def test_a_message_that_comes_very_often_takes_time_in_proportion_to_its_size() -> None:
    part = build({"inner": {"ys": ["0123456789"]}}).SerializeToString()
    began = time.process_time()

    rows, errors = decode([part * 60_000], COMPILED)

    assert errors == {}
    assert rows[0]["inner"]["ys"] == ["0123456789"] * 60_000
    assert time.process_time() - began < 3


@given(MESSAGES, st.data())
def test_mutated_bytes_give_errors_and_leave_other_rows_alone(fields: Any, data: Any) -> None:
    message = build(fields)
    written = message.SerializeToString()
    broken = bytearray(written or b"\0")
    for _ in range(data.draw(st.integers(1, 3))):
        broken[data.draw(st.integers(0, len(broken) - 1))] = data.draw(st.integers(0, 255))
    datas = [written, bytes(broken[: data.draw(st.integers(0, len(broken)))]), bytes(broken), written]

    (rows, errors), (plain_rows, plain_errors) = (decode(datas, form) for form in FORMS)

    assert (repr(rows), errors) == (repr(plain_rows), plain_errors)
    assert [rows[0], rows[3]] == [expected(message)] * 2
    assert set(errors) <= {1, 2}


@pytest.mark.parametrize("form", FORMS)
def test_well_known_types_have_their_columns(form: Any) -> None:
    moment = datetime(1969, 7, 20, 20, 17, 40, 123456, UTC)
    message = ALL(wrapped={"value": 0}, again={"one_int32": 5})
    message.at.FromDatetime(moment)
    message.took.FromTimedelta(timedelta(seconds=-1.5))
    message.any.update({"a": [1, "x"]})

    rows, errors = decode([message.SerializeToString(), b""], form)

    assert errors == {}
    assert (rows[0]["at"], rows[0]["took"], rows[0]["wrapped"]) == (moment, timedelta(seconds=-1.5), 0)
    assert json.loads(rows[0]["any"]) == {"a": [1.0, "x"]}
    assert json.loads(rows[0]["again"]) == {"one_int32": 5}
    assert [rows[1][name] for name in ("at", "took", "any", "wrapped", "inner", "one_int32")] == [None] * 5 + [0]


@pytest.mark.parametrize("form", FORMS)
def test_as_in_spark_zeros_are_null_and_wrappers_structs(form: Any) -> None:
    rows, errors = decode([ALL(wrapped={"value": 5}).SerializeToString()], form, fills_zeros=False, unwraps=False)

    assert errors == {}
    assert (rows[0]["one_int32"], rows[0]["wrapped"], rows[0]["many_int32"]) == (None, {"value": 5}, [])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\x0a\x05ab", "bytes are left over|end within a field"),
        (b"\x00\x01", "a field number 0"),
        (b"\xfa\x3f\xff", "end within a field"),
        (b"\xf3\x3f" * 200, "nested more than 100 times"),
        (b"\x9a\x03\x0c\x08\xff\xff\xff\xff\xff\xff\xff\xff\x7f\x10\x00", "is out of range"),
    ],
)
def test_damaged_messages_have_an_error(form: Any, data: bytes, message: str) -> None:
    rows, errors = decode([data], form)

    assert rows == [None]
    assert any(part in errors[0] for part in message.split("|"))


def test_a_value_of_another_message_is_an_error() -> None:
    columns = ProtobufColumns(ALL.DESCRIPTOR)
    columns.add_writer(PREFIX, "shop.Other")

    _, errors = columns.decode(column_of([PREFIX]))

    assert "it is a message shop.Other, and the column has shop.All" in errors[0]


def test_types_of_columns() -> None:
    kind: Any = ProtobufColumns(ALL.DESCRIPTOR).kind

    assert [kind.field(name).type for name in ("one_uint64", "one_Kind", "at", "took", "any")] == [
        pa.uint64(), pa.dictionary(pa.int32(), pa.string()), pa.timestamp("us", "UTC"), pa.duration("us"), pa.string(),
    ]  # fmt: skip
