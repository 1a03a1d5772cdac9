"""The compiled writer of dicts, its plain form and fastavro write the same bytes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given

from ottla.errors import SerializationError
from ottla.schemas import Schema, avro_schema, avro_writer
from ottla.schemas.avro import AvroEncoder
from ottla.schemas.avro_schema import build_writer, parse_avro
from tests.plain import is_compiled, plain
from tests.schemas.avro_cases import by_fastavro, cases

COMPILED = avro_writer
PLAIN = plain("ottla.schemas.avro_writer")


def write(text: str, value: Any, nodes: Any) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(avro_schema, "nodes", nodes)
        return build_writer(parse_avro(Schema(text))).write(value, b"\0prefix")


def test_the_compiled_form_is_compiled() -> None:
    assert not is_compiled(PLAIN)


@given(cases())
def test_writers_agree_with_fastavro(case: tuple[str, Any]) -> None:
    text, value = case
    expected = by_fastavro(text, value)

    for nodes in (COMPILED, PLAIN):
        assert write(text, value, nodes) in (None, b"\0prefix" + expected)
    parsed = parse_avro(Schema(text))
    if not parsed.is_plain_bytes:
        assert AvroEncoder(parsed, False, False)(value, b"") == expected


@pytest.mark.parametrize("nodes", [COMPILED, PLAIN])
def test_usual_values_need_no_fastavro(nodes: Any) -> None:
    fields = [
        {"name": "id", "type": "long"},
        {"name": "name", "type": ["null", "string"], "default": None},
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["A", "B"]}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    ]
    text = json.dumps({"type": "record", "name": "R", "fields": fields})

    assert write(text, {"id": -1, "kind": "B", "at": 5}, nodes) == b"\0prefix\1\0\2\n"


@pytest.mark.parametrize("nodes", [COMPILED, PLAIN])
@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ("int", 2**31),
        ("long", 2**63),
        ("long", True),
        ("string", b"x"),
        ("float", 1e300),
        (["null", "int", "long"], 5),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, "B"),
        ({"type": "fixed", "name": "F", "size": 2}, b"abc"),
        ({"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]}, {}),
    ],
)
def test_unusual_values_are_left_to_fastavro(nodes: Any, schema: Any, value: Any) -> None:
    assert write(json.dumps(schema), value, nodes) is None


def test_a_recursive_value_may_be_deeper_than_the_compiled_writer_goes() -> None:
    text = json.dumps({"type": "record", "name": "L", "fields": [{"name": "next", "type": ["null", "L"]}]})
    value: Any = None
    for _ in range(200):
        value = {"next": value}

    assert AvroEncoder(parse_avro(Schema(text)), False, False)(value, b"") == by_fastavro(text, value)


def test_strict_validation_rejects_other_fields() -> None:
    text = json.dumps({"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]})
    value = {"a": 1, "b": 2}

    assert AvroEncoder(parse_avro(Schema(text)), False, False)(value, b"") == b"\2"
    with pytest.raises(SerializationError, match="b"):
        AvroEncoder(parse_avro(Schema(text)), True, False)(value, b"")


@pytest.mark.parametrize("text", ["{", '{"type": "record"}', '{"type": "unknown"}', "[1]", '{"type": "array"}'])
def test_wrong_schemas_are_explained(text: str) -> None:
    with pytest.raises(SerializationError, match="is not an Avro schema"):
        parse_avro(Schema(text))
