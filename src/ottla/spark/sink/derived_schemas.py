"""Derives the schemas of registered values from Spark's columns. Pure."""

from __future__ import annotations

import json
from typing import Any

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from ottla.errors import ConfigError

TOP = "topLevelRecord"
"""The name of a record without a name of its own, as in Spark's `to_avro`."""
KINDS: dict[type[DataType], Any] = {
    BooleanType: "boolean",
    ByteType: "int",
    ShortType: "int",
    IntegerType: "int",
    LongType: "long",
    FloatType: "float",
    DoubleType: "double",
    StringType: "string",
    BinaryType: "bytes",
    DateType: {"type": "int", "logicalType": "date"},
    TimestampType: {"type": "long", "logicalType": "timestamp-micros"},
    TimestampNTZType: {"type": "long", "logicalType": "local-timestamp-micros"},
}
JSON_KINDS: dict[type[DataType], Any] = {
    BooleanType: {"type": "boolean"},
    ByteType: {"type": "integer"},
    ShortType: {"type": "integer"},
    IntegerType: {"type": "integer"},
    LongType: {"type": "integer"},
    FloatType: {"type": "number"},
    DoubleType: {"type": "number"},
    StringType: {"type": "string"},
    DecimalType: {"type": "string"},
    BinaryType: {"type": "string", "contentEncoding": "base64"},
    DateType: {"type": "string", "format": "date"},
    TimestampType: {"type": "string", "format": "date-time"},
    TimestampNTZType: {"type": "string"},
}
"""The JSON Schemas of simple types; `date-time` needs a time zone (RFC 3339)."""
DRAFT = "http://json-schema.org/draft-07/schema#"


def derived_schema(form: str, kind: DataType, column: str) -> str:
    """Return the schema of a column in a format. Raises ConfigError if the column has none."""
    return avro_of(kind, column) if form == "avro" else json_of(kind, column)


def avro_of(kind: DataType, column: str) -> str:
    """Return the Avro schema of a column; fields that may be null have null as their default."""
    try:
        return json.dumps(avro_type(kind, TOP))
    except TypeError as error:
        raise ConfigError(f"{error} in the column {column!r} has no Avro type; cast it, or leave it out") from None


def json_of(kind: DataType, column: str) -> str:
    """Return the JSON Schema of a column. Objects have no other properties, so that a new column is a compatible change."""
    try:
        return json.dumps({"$schema": DRAFT, **json_type(kind, False)})
    except TypeError as error:
        raise ConfigError(f"{error} in the column {column!r} has no JSON type; cast it, or leave it out") from None


def json_type(kind: DataType, is_nullable: bool) -> dict[str, Any]:
    """Return the JSON Schema of a type. Raises TypeError if there is none."""
    found: Any = JSON_KINDS.get(type(kind))
    if isinstance(kind, ArrayType):
        found = {"type": "array", "items": json_type(kind.elementType, kind.containsNull)}
    elif isinstance(kind, MapType) and isinstance(kind.keyType, StringType):
        found = {"type": "object", "additionalProperties": json_type(kind.valueType, kind.valueContainsNull)}
    elif isinstance(kind, StructType):
        found = {
            "type": "object",
            "properties": {one.name: json_type(one.dataType, one.nullable) for one in kind.fields},
            "required": [one.name for one in kind.fields if not one.nullable],
            "additionalProperties": False,
        }
    if found is None:
        raise TypeError(kind.simpleString())
    return {**found, "type": [found["type"], "null"]} if is_nullable else dict(found)


def avro_type(kind: DataType, name: str) -> Any:
    """Return the Avro type; `name` is the name of a record. Raises TypeError if there is none."""
    if isinstance(kind, DecimalType):
        return {"type": "bytes", "logicalType": "decimal", "precision": kind.precision, "scale": kind.scale}
    if isinstance(kind, ArrayType):
        return {"type": "array", "items": optional(avro_type(kind.elementType, name), kind.containsNull)}
    if isinstance(kind, MapType) and isinstance(kind.keyType, StringType):
        return {"type": "map", "values": optional(avro_type(kind.valueType, name), kind.valueContainsNull)}
    if isinstance(kind, StructType):
        fields: list[Any] = []
        for one in kind.fields:
            field = {"name": one.name, "type": optional(avro_type(one.dataType, f"{name}.{one.name}"), one.nullable)}
            fields.append({**field, "default": None} if one.nullable else field)
        return {"type": "record", "name": name, "fields": fields}
    found = KINDS.get(type(kind))
    if found is None:
        raise TypeError(kind.simpleString())
    return found


def optional(schema: Any, is_nullable: bool) -> Any:
    return ["null", schema] if is_nullable else schema
