"""Columns as Avro: the compiled form, its plain form and the writer of dicts write the same bytes."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.errors import SerializationError
from ottla.records.binary_column import column_of
from ottla.schemas import Schema, avro_column_encoder, avro_column_writer
from ottla.schemas.avro import AvroEncoder
from ottla.schemas.avro_column_encoder import AvroColumnEncoder
from ottla.schemas.avro_columns import AvroColumns
from ottla.schemas.avro_schema import parse_avro
from tests.plain import is_compiled, plain
from tests.schemas.avro_cases import by_fastavro, cases

PLAIN = plain("ottla.schemas.avro_column_writer", "ottla.schemas.avro_writer")
FORMS = [avro_column_writer, PLAIN]
PREFIX = b"\0\0\0\0\1"


def encode(
    schema: Any, column: Any, form: Any = avro_column_writer, slow: list[int] | None = None
) -> list[bytes | None]:
    """Encode a column; `slow` receives the rows that the nodes left to the writer of dicts."""
    parsed = parse_avro(Schema(schema if isinstance(schema, str) else json.dumps(schema)))
    encoder = AvroEncoder(parsed, False, False)

    def encode_row(value: Any, row: int) -> bytes:
        if slow is not None:
            slow.append(row)
        return encoder(value, PREFIX)

    chunked = column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column])
    encoded = AvroColumnEncoder(parsed, PREFIX, encode_row, form).encode(chunked)
    encoded.validate(full=True)
    return encoded.to_pylist()


def by_dicts(schema: Any, column: Any) -> list[bytes | None]:
    encoder = AvroEncoder(parse_avro(Schema(json.dumps(schema))), False, False)
    values = column.to_pylist(maps_as_pydicts="strict")
    return [None if value is None else encoder(value, PREFIX) for value in values]


def record(**fields: Any) -> Any:
    return {"type": "record", "name": "R", "fields": [{"name": name, "type": kind} for name, kind in fields.items()]}


def test_the_compiled_form_is_compiled() -> None:
    assert is_compiled(avro_column_writer)
    assert not is_compiled(PLAIN)


@given(st.data(), cases())
def test_columns_become_the_bytes_that_they_were_read_from(data: Any, case: tuple[str, Any]) -> None:
    text, value = case
    parsed = parse_avro(Schema(text))
    written = PREFIX + by_fastavro(text, value)
    rows = data.draw(st.lists(st.sampled_from([written, None]), max_size=20))
    columns = AvroColumns(parsed)
    columns.add_writer(1, parsed)
    array, _ = columns.decode(column_of(rows))
    start = data.draw(st.integers(0, len(rows)))
    # In a column, null in a nullable value cannot be told from no value.
    expected = [None if row is None or value is None else row for row in rows][start:]
    if parsed.is_plain_bytes:
        expected = [None if row is None else PREFIX + value for row in expected]

    for form in FORMS:
        assert encode(text, array.slice(start), form) == expected


@pytest.mark.parametrize("form", FORMS)
def test_each_type_of_column_is_written_without_objects(form: Any) -> None:
    moment = datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC)
    row = {
        "small": -3,
        "large": 2**40,
        "ratio": 1.5,
        "whole": 7,
        "flag": True,
        "text": "é",
        "data": b"\0\xff",
        "fixed": b"ab",
        "kind": "B",
        "tags": ["x", None],
        "counts": {"a": 1, "b": 2},
        "day": date(1960, 1, 2),
        "at": moment,
        "exact": moment,
        "local": moment.replace(tzinfo=None),
        "clock": time(1, 2, 3, 4000),
        "price": Decimal("-1.28"),
        "deep": [{"x": [1.5]}],
        "id": "12345678-1234-5678-1234-567812345678",
    }
    kinds: dict[str, Any] = {
        "small": pa.int8(),
        "large": pa.uint64(),
        "ratio": pa.float32(),
        "whole": pa.int16(),
        "flag": pa.bool_(),
        "text": pa.large_string(),
        "data": pa.large_binary(),
        "fixed": pa.binary(2),
        "kind": pa.dictionary(pa.int8(), pa.string()),
        "tags": pa.large_list(pa.string_view()),
        "counts": pa.map_(pa.string(), pa.int32()),
        "day": pa.date32(),
        "at": pa.timestamp("us", "UTC"),
        "exact": pa.timestamp("us", "Europe/Oslo"),
        "local": pa.timestamp("us"),
        "clock": pa.time64("us"),
        "price": pa.decimal128(9, 2),
        "deep": pa.list_(pa.struct([("x", pa.list_(pa.float64(), 1))])),
        "id": pa.dictionary(pa.int32(), pa.string()),
    }
    schema = record(
        small="int",
        large="long",
        ratio="double",
        whole="float",
        flag="boolean",
        text="string",
        data="bytes",
        fixed={"type": "fixed", "name": "F", "size": 2},
        kind={"type": "enum", "name": "E", "symbols": ["A", "B"]},
        tags={"type": "array", "items": ["string", "null"]},
        counts={"type": "map", "values": "long"},
        day={"type": "int", "logicalType": "date"},
        at={"type": "long", "logicalType": "timestamp-millis"},
        exact={"type": "long", "logicalType": "timestamp-micros"},
        local={"type": "long", "logicalType": "local-timestamp-millis"},
        clock={"type": "int", "logicalType": "time-millis"},
        price={"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 4},
        deep={"type": "array", "items": record(x={"type": "array", "items": "float"}) | {"name": "X"}},
        id={"type": "string", "logicalType": "uuid"},
    )
    column = pa.array([row, None, row, row], pa.struct(kinds)).slice(1)
    slow: list[int] = []

    assert encode(schema, column, form, slow) == by_dicts(schema, column)
    assert slow == []


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("size", [None, 1, 3, 20])
def test_decimals_have_the_bytes_of_fastavro(form: Any, size: int | None) -> None:
    schema: Any = {"type": "bytes", "logicalType": "decimal", "precision": 30, "scale": 0}
    powers = [Decimal(2**bits) for bits in (0, 6, 7, 8, 15, 16, 23, 24, 63)]
    values = [
        Decimal(0),
        *powers,
        *(-one for one in powers),
        *(one - 1 for one in powers),
        *(-1 - one for one in powers),
    ]
    if size is not None:
        digits = min(30, len(str(2 ** (8 * size - 1))) - 1)
        schema = {**schema, "type": "fixed", "name": "F", "size": size, "precision": digits}
        values = [one for one in values if abs(one) < 10**digits]
    column = pa.array(values, pa.decimal128(30, 0))

    assert encode(schema, column, form) == by_dicts(schema, column)


@pytest.mark.parametrize("form", FORMS)
def test_absent_fields_have_their_defaults(form: Any) -> None:
    schema = record(a="int")
    schema["fields"] += [
        {"name": "b", "type": ["null", "string"], "default": None},
        {"name": "c", "type": {"type": "array", "items": "int"}, "default": [1, 2]},
    ]
    slow: list[int] = []

    assert encode(schema, pa.array([{"a": 1, "z": 0}]), form, slow) == by_dicts(schema, pa.array([{"a": 1}]))
    assert slow == []


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("kind", "column"),
    [
        ("long", pa.array([1, None])),
        ("string", pa.array([1])),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, pa.array(["A", "B"])),
        ({"type": "fixed", "name": "F", "size": 2}, pa.array([b"ab", b"abc"])),
        ({"type": "bytes", "logicalType": "decimal", "precision": 3, "scale": 1}, pa.array([Decimal("1.25")])),
        ({"type": "long", "logicalType": "timestamp-millis"}, pa.array(["soon"])),
    ],
)
def test_a_value_that_does_not_fit_has_the_error_of_the_writer_of_dicts(form: Any, kind: Any, column: Any) -> None:
    rows = pa.StructArray.from_arrays([column], ["a"])
    with pytest.raises(SerializationError) as expected:
        by_dicts(record(a=kind), rows)

    with pytest.raises(SerializationError) as found:
        encode(record(a=kind), rows, form)

    assert str(found.value) == str(expected.value)


@pytest.mark.parametrize("form", FORMS)
def test_two_equal_keys_of_a_map_are_rejected(form: Any) -> None:
    column = pa.array([[("a", 1), ("b", 2)], [("b", 1), ("b", 2)]], pa.map_(pa.string(), pa.int64()))

    with pytest.raises(KeyError, match="Converting to Python dictionary is not supported in strict mode"):
        encode({"type": "map", "values": "long"}, column, form)


@pytest.mark.parametrize("form", FORMS)
def test_columns_of_a_type_without_nodes_are_written_as_objects(form: Any) -> None:
    schema = record(day={"type": "int", "logicalType": "date"}, either=["int", "null", "string"])
    column = pa.array([{"day": "2026-11-30", "either": "x"}, {"day": "1960-01-01", "either": None}])
    slow: list[int] = []

    assert encode(schema, column, form, slow) == by_dicts(schema, column)
    assert slow == [0, 1]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("kind", "column"), [("int", pa.array([1, 2**40])), ("float", pa.array([1.0, 1e300]))])
def test_numbers_out_of_range_are_left_to_fastavro(form: Any, kind: str, column: Any) -> None:
    slow: list[int] = []

    assert encode(kind, column, form, slow) == by_dicts(kind, column)
    assert slow == [1]


@pytest.mark.parametrize("form", FORMS)
def test_special_floats_are_written(form: Any) -> None:
    column = pa.array([float("nan"), float("inf"), float("-inf"), -0.0], pa.float32())
    slow: list[int] = []

    for kind in ("float", "double"):
        assert encode(kind, column, form, slow) == by_dicts(kind, column)
    assert slow == []


def test_large_columns_are_divided(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(avro_column_encoder, "LIMIT_BYTES", 1000)
    values = [None if row % 7 == 0 else "x" * (row % 90) for row in range(500)]
    column = pa.chunked_array([pa.array(values[:123]), pa.array(values[123:])])

    assert encode('"string"', column) == [
        None if value is None else PREFIX + by_fastavro('"string"', value) for value in values
    ]
