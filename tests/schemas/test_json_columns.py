"""Registered JSON values as columns: the compiled form and its plain form read what Python's parser reads."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.errors import SerializationError
from ottla.records.binary_column import column_of
from ottla.schemas import Schema, column_reader, json_reader
from ottla.schemas.arrow_columns import Forms
from ottla.schemas.json_columns import JsonColumns
from tests.plain import is_compiled, plain

PLAIN = Forms(plain("ottla.schemas.column_reader"), plain("ottla.schemas.json_reader", "ottla.schemas.column_reader"))
COMPILED = Forms(column_reader, json_reader)
FORMS = [COMPILED, PLAIN]
PREFIX = b"\0\0\0\0\1"
ORDER: dict[str, Any] = {
    "type": "object",
    "properties": {
        "id": {"type": "integer"},
        "price": {"type": "number"},
        "item": {"type": ["string", "null"]},
        "paid": {"type": "boolean"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "place": {"$ref": "#/definitions/Place"},
        "counts": {"type": "object", "additionalProperties": {"type": "integer"}},
        "more": {},
    },
    "definitions": {
        "Place": {"type": "object", "properties": {"street": {"type": "string"}, "no": {"type": "integer"}}}
    },
}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)
WHOLE = st.integers(-(2**63), 2**63 - 1)
ORDERS = st.fixed_dictionaries(
    {},
    optional={
        "id": WHOLE | st.none(),
        "price": st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**53), 2**53) | st.none(),
        "item": st.text(max_size=20) | st.none(),
        "paid": st.booleans() | st.none(),
        "tags": st.lists(st.text(max_size=5) | st.none(), max_size=4) | st.none(),
        "place": st.none() | st.fixed_dictionaries({}, optional={"street": st.text(max_size=5), "no": WHOLE}),
        "counts": st.none() | st.dictionaries(st.text(max_size=3), WHOLE, max_size=3),
        "more": JSON,
        "unknown": JSON,
    },
)


def decode(
    schema: Any, datas: Sequence[bytes | None], form: Any = COMPILED, **references: Any
) -> tuple[list[Any], Any]:
    others = [(name, Schema(json.dumps(one), "JSON")) for name, one in references.items()]
    columns = JsonColumns(Schema(json.dumps(schema), "JSON"), others, form)
    columns.add_writer(1)
    array, errors = columns.decode(column_of([data if data is None else PREFIX + data for data in datas]))
    array.validate(full=True)
    assert array.type == columns.kind
    return array.to_pylist(maps_as_pydicts="strict"), errors


def expected(order: Any) -> Any:
    """Return an order as the column has it."""
    place = order.get("place")
    row = {name: order.get(name) for name in ORDER["properties"]}
    row["place"] = None if place is None else {"street": place.get("street"), "no": place.get("no")}
    return row


def comparable(row: Any) -> Any:
    """Return a row with the JSON text of `more` parsed."""
    return None if row is None else {**row, "more": None if row["more"] is None else json.loads(row["more"])}


def test_the_compiled_form_is_compiled() -> None:
    assert all(map(is_compiled, COMPILED))
    assert not any(map(is_compiled, PLAIN))


@given(st.lists(ORDERS | st.none(), max_size=5), st.sampled_from([None, 1]), st.booleans())
def test_columns_have_the_values_that_python_reads(orders: list[Any], indent: int | None, ascii_only: bool) -> None:
    datas = [
        None
        if one is None
        else json.dumps(one, indent=indent, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
        for one in orders
    ]

    for form in FORMS:
        rows, errors = decode(ORDER, datas, form)
        assert errors == {}
        assert [comparable(row) for row in rows] == [None if one is None else expected(one) for one in orders]


@given(ORDERS, st.data())
def test_mutated_bytes_give_errors_and_leave_other_rows_alone(order: Any, data: Any) -> None:
    written = json.dumps(order).encode()
    broken = bytearray(written)
    for _ in range(data.draw(st.integers(1, 3))):
        broken[data.draw(st.integers(0, len(broken) - 1))] = data.draw(st.sampled_from(b'{}[]",:0.e-\\ \n\x01\xfftn'))
    datas = [written, bytes(broken[: data.draw(st.integers(0, len(broken)))]), bytes(broken), written]

    (rows, errors), (plain_rows, plain_errors) = (decode(ORDER, datas, form) for form in FORMS)

    assert (rows, errors) == (plain_rows, plain_errors)
    assert [comparable(rows[0]), comparable(rows[3])] == [expected(order)] * 2
    for row in (1, 2):
        if row not in errors:
            json.loads(datas[row].decode(errors="replace"))


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_doubles_are_read_exactly(value: float) -> None:
    texts = {repr(value), f"{value:.3e}", f"{value:.1f}"}

    for form in FORMS:
        rows, errors = decode({"type": "number"}, [text.encode() for text in texts], form)
        assert errors == {}
        assert [(row, math.copysign(1, row)) for row in rows] == [
            (float(text), math.copysign(1, float(text))) for text in texts
        ]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("schema", "text", "message"),
    [
        ({"type": "integer"}, '"x"', "the value is a string, and the schema has integer"),
        ({"type": "integer"}, "1.5", "the value is 1.5, and the schema has an integer of 64 bits"),
        ({"type": "integer"}, "1e400", "the value is 1e400, and the schema has an integer"),
        ({"type": "integer"}, "9223372036854775808", "the value is 9223372036854775808"),
        ({"type": "integer"}, "9" * 5000, "the value is 99999"),
        ({"type": "string"}, "12", "the value is a number, and the schema has string"),
        ({"type": "boolean"}, "[]", "the value is an array, and the schema has boolean"),
        (ORDER, '{"place": {"no": "x"}}', "field place.no is a string, and the schema has integer"),
        (ORDER, '{"tags": {}}', "field tags is an object, and the schema has array"),
        (ORDER, '{"id": 1} 2', "it is not JSON: unexpected byte 0x32 at 10"),
        (ORDER, '{"id": 01}', "it is not JSON"),
        (ORDER, '{"id": 1', "it is not JSON: it ends within a value"),
        (ORDER, '{"item": "\\x"}', "it is not JSON: unexpected byte 0x78 at 11"),
        (ORDER, '{"item": "a\nb"}', "it is not JSON: unexpected byte 0x0a"),
        (ORDER, '{"more": ' + "[" * 200, "it is nested more than 128 times"),
        ({"type": "null"}, "1", "the value is a number, and the schema has null"),
    ],
)
def test_values_that_do_not_match_have_an_error(form: Any, schema: Any, text: str, message: str) -> None:
    rows, errors = decode(schema, [text.encode(), b"null"], form)

    assert rows == [None, None]
    assert message in errors[0]


@pytest.mark.parametrize("form", FORMS)
def test_whole_numbers_may_have_a_fraction_and_an_exponent(form: Any) -> None:
    texts = [b"1.0", b"1e3", b"-0", b"9223372036854775807", b"-9223372036854775808", b"1000000000000000000000e-20"]

    assert decode({"type": "integer"}, texts, form) == ([1, 1000, 0, 2**63 - 1, -(2**63), 10], {})


@pytest.mark.parametrize("form", FORMS)
def test_of_two_properties_with_one_name_the_last_counts(form: Any) -> None:
    text = b'{"tags": ["a", "b"], "i\\u0064": 1, "tags": ["c"], "id": 2, "place": {"no": 1}, "place": null}'

    rows, errors = decode(ORDER, [text, b"{}"], form)

    assert errors == {}
    assert (rows[0]["tags"], rows[0]["id"], rows[0]["place"], rows[1]["tags"]) == (["c"], 2, None, None)


@pytest.mark.parametrize(
    ("schema", "kind"),
    [
        ({"oneOf": [{"type": "null"}, {"type": "string"}]}, pa.string()),
        ({"anyOf": [{"type": "integer"}, {"type": "number"}]}, pa.float64()),
        ({"type": ["integer", "string"]}, pa.string()),
        ({"enum": ["a", None]}, pa.string()),
        ({"const": 1}, pa.int64()),
        (True, pa.string()),
        ({"type": "array"}, pa.list_(pa.string())),
        ({"type": "array", "items": [{"type": "string"}]}, pa.string()),
        ({"type": "object"}, pa.string()),
        ({"type": "object", "patternProperties": {"^x": {"type": "number"}}}, pa.map_(pa.string(), pa.float64())),
        (
            {"allOf": [{"$ref": "base.json"}, {"properties": {"b": {"type": "string"}}}]},
            pa.struct([("a", pa.int64()), ("b", pa.string())]),
        ),
        ({"$ref": "base.json#/properties/a"}, pa.int64()),
        (
            {
                "$id": "node.json",
                "properties": {
                    "next": {"$ref": "#"},
                    "x": {"$ref": "node.json#/properties/y"},
                    "y": {"type": "number"},
                },
            },
            pa.struct([("next", pa.string()), ("x", pa.float64()), ("y", pa.float64())]),
        ),
    ],
)
def test_schemas_have_their_column_types(schema: Any, kind: Any) -> None:
    base = Schema('{"type": "object", "properties": {"a": {"type": "integer"}}}', "JSON")

    assert JsonColumns(Schema(json.dumps(schema), "JSON"), [("base.json", base)]).kind == kind


def test_an_unknown_reference_is_an_error() -> None:
    with pytest.raises(SerializationError, match=r"refers to 'other.json'; add a reference"):
        JsonColumns(Schema('{"$ref": "other.json"}', "JSON"))
    with pytest.raises(SerializationError, match="references of the JSON Schema follow one another"):
        JsonColumns(Schema('{"$ref": "#"}', "JSON"))


@pytest.mark.parametrize("choice", ["allOf", "oneOf"])
def test_parts_that_consist_of_each_other_are_an_error(choice: str) -> None:
    first = {choice: [{"$ref": "#/definitions/B"}, {"type": "string"}]}
    schema = {"$ref": "#/definitions/A", "definitions": {"A": first, "B": {choice: [{"$ref": "#/definitions/A"}]}}}
    schema["definitions"]["B"][choice].append({"type": "integer"})  # type: ignore[index]

    with pytest.raises(SerializationError, match="parts of the JSON Schema consist of each other"):
        JsonColumns(Schema(json.dumps(schema), "JSON"))


def test_many_parts_that_refer_to_each_other_are_an_error_instead_of_millions_of_columns() -> None:
    names = [f"T{number}" for number in range(20)]
    node = {"type": "object", "properties": {name: {"$ref": f"#/definitions/{name}"} for name in names}}
    schema = {"$ref": "#/definitions/T0", "definitions": dict.fromkeys(names, node)}

    with pytest.raises(SerializationError, match="more than 10000 columns"):
        JsonColumns(Schema(json.dumps(schema), "JSON"))
