"""Avro arrays whose items take no bytes: a short value could claim any number of them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ottla.errors import SerializationError
from ottla.schemas import Schema
from ottla.schemas.avro import decoder_of
from ottla.schemas.avro_schema import parse_avro

EMPTY: dict[str, Any] = {"type": "record", "name": "Empty", "fields": []}
NODE: dict[str, Any] = {
    "type": "record",
    "name": "Node",
    "fields": [
        {"name": "next", "type": ["null", "Node"]},
        {"name": "values", "type": {"type": "array", "items": "int"}},
    ],
}


def record_of(kind: Any) -> dict[str, Any]:
    return {"type": "record", "name": "Top", "fields": [{"name": "field", "type": kind}]}


@pytest.mark.parametrize(
    "items",
    [
        "null",
        {"type": "null"},
        {"type": "fixed", "name": "F", "size": 0},
        EMPTY,
        {
            "type": "record",
            "name": "Nulls",
            "fields": [{"name": "nothing", "type": "null"}, {"name": "empty", "type": EMPTY}],
        },
    ],
)
def test_such_a_schema_is_rejected_before_a_value_is_read(items: Any) -> None:
    for schema in (
        {"type": "array", "items": items},
        record_of(["null", {"type": "map", "values": {"type": "array", "items": items}}]),
    ):
        with pytest.raises(SerializationError, match="could claim any number"):
            decoder_of(parse_avro(Schema(json.dumps(schema), "AVRO")), None, False)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "array", "items": ["null"]},
        {"type": "array", "items": "string"},
        {"type": "array", "items": {"type": "array", "items": "int"}},
        {"type": "array", "items": {"type": "enum", "name": "E", "symbols": ["a"]}},
        {"type": "map", "values": "null"},
        NODE,
        record_of(EMPTY),
    ],
)
def test_other_schemas_are_read(schema: Any) -> None:
    assert decoder_of(parse_avro(Schema(json.dumps(schema), "AVRO")), None, False) is not None
