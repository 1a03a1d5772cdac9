"""Registered Avro values as columns: the compiled form, its plain form and fastavro read the same values."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Sequence
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.errors import SerializationError
from ottla.records.binary_column import BinaryColumn, column_of
from ottla.schemas import Schema, avro_reader, column_reader
from ottla.schemas.arrow_columns import Forms
from ottla.schemas.avro_columns import AvroColumns
from ottla.schemas.avro_schema import parse_avro
from tests.plain import is_compiled, plain
from tests.schemas.avro_cases import by_fastavro, cases

PLAIN = Forms(plain("ottla.schemas.column_reader"), plain("ottla.schemas.avro_reader", "ottla.schemas.column_reader"))
COMPILED = Forms(column_reader, avro_reader)
FORMS = [COMPILED, PLAIN]
PREFIX = b"\0\0\0\0\1"


def decode(writer: Any, datas: Sequence[bytes | None], reader: Any = None, form: Any = COMPILED) -> tuple[Any, Any]:
    """Decode values of schema 1, without their prefix."""
    written = parse_avro(Schema(writer if isinstance(writer, str) else json.dumps(writer)))
    wanted = written if reader is None else parse_avro(Schema(json.dumps(reader)))
    columns = AvroColumns(wanted, form)
    columns.add_writer(1, written)
    array, errors = columns.decode(column_of([data if data is None else PREFIX + data for data in datas]))
    array.validate(full=True)
    assert array.type == columns.kind
    return array.to_pylist(maps_as_pydicts="strict"), errors


def read(writer: Any, values: list[Any], reader: Any = None, form: Any = COMPILED) -> list[Any]:
    rows, errors = decode(writer, [by_fastavro(json.dumps(writer), value) for value in values], reader, form)
    assert errors == {}
    return list(rows)


def record(*fields: Any, name: str = "R") -> Any:
    return {
        "type": "record",
        "name": name,
        "fields": [{"name": one[0], "type": one[1], **dict(one[2:])} for one in fields],
    }


def comparable(value: Any) -> Any:
    """Return a value in which equal floats are equal, NaN too."""
    if isinstance(value, float):
        return "nan" if math.isnan(value) else struct.pack(">d", value)
    if isinstance(value, dict):
        return {key: comparable(part) for key, part in value.items()}
    return [comparable(part) for part in value] if isinstance(value, list) else value


def test_the_compiled_form_is_compiled() -> None:
    assert all(map(is_compiled, COMPILED))
    assert not any(map(is_compiled, PLAIN))


@given(st.data(), cases())
def test_values_are_those_that_fastavro_wrote(data: Any, case: tuple[str, Any]) -> None:
    text, value = case
    written = by_fastavro(text, value)
    datas = data.draw(st.lists(st.sampled_from([written, None]), max_size=20))

    for form in FORMS:
        rows, errors = decode(text, datas, form=form)
        assert errors == {}
        assert comparable(rows) == comparable([None if one is None else value for one in datas])


@given(st.data(), cases())
def test_mutated_bytes_give_errors_and_leave_other_rows_alone(data: Any, case: tuple[str, Any]) -> None:
    text, value = case
    written = by_fastavro(text, value)
    broken = bytearray(written)
    for _ in range(data.draw(st.integers(1, 4))):
        if broken:
            broken[data.draw(st.integers(0, len(broken) - 1))] = data.draw(st.integers(0, 255))
    datas = [written, bytes(broken[: data.draw(st.integers(0, len(broken)))]), bytes(broken), written]

    (rows, errors), (plain_rows, plain_errors) = (decode(text, datas, form=form) for form in FORMS)

    assert comparable([rows[0], rows[3]]) == comparable([value, value])
    assert errors == plain_errors
    assert set(errors) <= {1, 2}
    assert comparable(rows) == comparable(plain_rows)


@given(cases(), st.lists(st.binary(max_size=40), max_size=5))
def test_random_bytes_give_errors(case: tuple[str, Any], datas: list[bytes]) -> None:
    (rows, errors), (plain_rows, plain_errors) = (decode(case[0], list(datas), form=form) for form in FORMS)

    assert errors == plain_errors
    assert comparable(rows) == comparable(plain_rows)


@pytest.mark.parametrize("form", FORMS)
def test_many_rows_and_long_values_grow_the_columns(form: Any) -> None:
    schema = record(
        ("a", "string"),
        ("b", ["null", "long"]),
        ("c", {"type": "array", "items": "int"}),
        ("d", "boolean"),
        ("e", "double"),
    )
    values = [
        {
            "a": "x" * (row % 300),
            "b": None if row % 3 else row,
            "c": list(range(row % 7)),
            "d": row % 2 == 0,
            "e": row / 2,
        }
        for row in range(1000)
    ]

    assert read(schema, values, form=form) == values


@pytest.mark.parametrize("form", FORMS)
def test_logical_types_have_their_column_types(form: Any) -> None:
    schema = record(
        ("day", {"type": "int", "logicalType": "date"}),
        ("ms", {"type": "long", "logicalType": "timestamp-millis"}),
        ("us", {"type": "long", "logicalType": "timestamp-micros"}),
        ("local", {"type": "long", "logicalType": "local-timestamp-micros"}),
        ("clock", {"type": "long", "logicalType": "time-micros"}),
        ("price", {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}),
        ("wide", {"type": "bytes", "logicalType": "decimal", "precision": 50, "scale": 0}),
        ("fixed", {"type": "fixed", "name": "F", "size": 8, "logicalType": "decimal", "precision": 12, "scale": 3}),
        ("id", {"type": "string", "logicalType": "uuid"}),
    )
    moment = datetime(2026, 11, 30, 12, 30, 15, 123000, UTC)
    value = {
        "day": date(1969, 7, 20),
        "ms": moment,
        "us": moment,
        "local": moment.replace(tzinfo=None),
        "clock": time(23, 59, 59, 999999),
        "price": Decimal("-1.50"),
        "wide": Decimal(-(10**48)),
        "fixed": Decimal("-7.125"),
        "id": "12345678-1234-5678-1234-567812345678",
    }

    assert read(schema, [value], form=form) == [value]


@pytest.mark.parametrize("form", FORMS)
def test_general_unions_are_dense_unions(form: Any) -> None:
    schema = record(("u", ["null", "int", "string", record(("x", "long"), name="X")]))
    values = [{"u": value} for value in (1, None, "a", {"x": 5}, 2)]

    assert read(schema, values, form=form) == values


@pytest.mark.parametrize("form", FORMS)
def test_enums_are_dictionaries(form: Any) -> None:
    schema = {"type": "enum", "name": "E", "symbols": ["A", "B"]}
    columns = AvroColumns(parse_avro(Schema(json.dumps(schema))), form)

    assert columns.kind == pa.dictionary(pa.int32(), pa.string())
    assert read(schema, ["B", "A"], form=form) == ["B", "A"]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("writer", "value", "reader", "expected"),
    [
        ("int", 5, "long", 5),
        ("int", -5, "double", -5.0),
        ("long", 2**40, "float", float(2**40)),
        ("float", 1.5, "double", 1.5),
        ("string", "é", "bytes", "é".encode()),
        ("bytes", b"x", "string", "x"),
        ("int", 5, ["null", "long"], 5),
        (["null", "int"], 5, "int", 5),
        ("string", "x", ["int", "string"], "x"),
        ("int", 3, ["string", "double"], 3.0),
        (
            record(("a", "int"), ("b", "string")),
            {"a": 1, "b": "x"},
            record(("b", "string"), ("a", "long")),
            {"b": "x", "a": 1},
        ),
        (record(("a", "int")), {"a": 1}, record(("b", "int", ("aliases", ["a"]))), {"b": 1}),
        (
            record(("a", "int")),
            {"a": 1},
            record(
                ("s", "string", ("default", "é")),
                ("u", ["null", "int"], ("default", None)),
                ("l", {"type": "array", "items": "long"}, ("default", [1, -2])),
                ("m", {"type": "map", "values": "boolean"}, ("default", {"k": True})),
                ("f", "float", ("default", 0.5)),
                ("b", "bytes", ("default", "\u00ff")),
                ("r", record(("x", "int", ("default", 3)), name="X"), ("default", {})),
            ),
            {"s": "é", "u": None, "l": [1, -2], "m": {"k": True}, "f": 0.5, "b": b"\xff", "r": {"x": 3}},
        ),
        (
            {"type": "enum", "name": "E", "symbols": ["A", "Z"]},
            "Z",
            {"type": "enum", "name": "E", "symbols": ["B", "A"], "default": "B"},
            "B",
        ),
        (
            record(("skip", {"type": "map", "values": ["null", record(("x", "string"), name="X")]}), ("a", "int")),
            {"skip": {"k": {"x": "y"}, "n": None}, "a": 1},
            record(("a", "int")),
            {"a": 1},
        ),
    ],
)
def test_values_of_other_versions_are_resolved(form: Any, writer: Any, value: Any, reader: Any, expected: Any) -> None:
    assert read(writer, [value, value], reader, form) == [expected, expected]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("writer", "value", "reader", "message"),
    [
        (
            record(("a", "int")),
            {"a": 1},
            record(("b", "int")),
            "has no field b, and the reader's schema has no default",
        ),
        (
            record(("a", "string")),
            {"a": "x"},
            record(("a", "int")),
            "field a was written as string, and the reader's schema has int",
        ),
        (["null", "string"], None, "string", "the value was written as null"),
        (
            {"type": "enum", "name": "E", "symbols": ["A"]},
            "A",
            {"type": "enum", "name": "E", "symbols": ["B"]},
            "no symbol 'A' and no default",
        ),
    ],
)
def test_values_that_do_not_match_have_an_error(form: Any, writer: Any, value: Any, reader: Any, message: str) -> None:
    rows, errors = decode(writer, [by_fastavro(json.dumps(writer), value)], reader, form)

    assert rows == [None]
    assert message in errors[0]


def test_a_record_that_contains_itself_cannot_be_a_column_but_can_be_skipped() -> None:
    recursive = record(("next", ["null", "L"]), name="L")
    with pytest.raises(SerializationError, match="the record L contains itself"):
        decode(recursive, [])
    value: Any = None
    for _ in range(10):
        value = {"next": value}

    assert read(record(("a", "int"), ("l", recursive)), [{"a": 1, "l": value}], record(("a", "int"))) == [{"a": 1}]


@pytest.mark.parametrize("form", FORMS)
def test_items_without_bytes_are_limited(form: Any) -> None:
    rows, errors = decode({"type": "array", "items": "null"}, [b"\xfe\xff\xff\xff\xff\xff\xff\x7f\0"], form=form)

    assert rows == [None]
    assert "array items without bytes" in errors[0]


def test_blocks_with_sizes_are_read() -> None:
    assert decode({"type": "array", "items": "int"}, [b"\x03\x04\x02\x04\x02\x06\0"]) == ([[1, 2, 3]], {})


@pytest.mark.parametrize("form", FORMS)
def test_invalid_text_is_an_error(form: Any) -> None:
    rows, errors = decode("string", [b"\x04ok", b"\x04\xff\xfe", b"\x04ok"], form=form)

    assert rows == ["ok", None, "ok"]
    assert "not UTF-8 at byte 0" in errors[1]


def test_an_empty_column_has_the_type() -> None:
    columns = AvroColumns(parse_avro(Schema(json.dumps(record(("a", "int"))))))

    array, errors = columns.decode(BinaryColumn.of_nulls(0))

    assert (len(array), array.type, errors) == (0, pa.struct([("a", pa.int32())]), {})
