"""Avro records as stored in a topic: without a container, with one given schema.

The types are those of Spark's `from_avro`. Requires `fastavro` (the extra `schemas`).
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from ottla.errors import ConfigError
from ottla.spark.formats.format import Decoded
from ottla.spark.formats.registry_head import explain_registry_head

PRIMITIVES: dict[str, Any] = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
    "enum": pa.string(),
    "fixed": pa.binary(),
}
LOGICAL: dict[tuple[str, str], Any] = {
    ("int", "date"): pa.date32(),
    ("long", "timestamp-millis"): pa.timestamp("us", "UTC"),
    ("long", "timestamp-micros"): pa.timestamp("us", "UTC"),
    ("long", "local-timestamp-millis"): pa.timestamp("us"),
    ("long", "local-timestamp-micros"): pa.timestamp("us"),
}
"""Logical types with their own column type; others are read as their primitive types."""
WIDER = {frozenset({"int", "long"}): "long", frozenset({"float", "double"}): "double"}
"""Unions that are read as one type."""
PROBLEM = "cannot be a column"
REMEDY = "Spark reads such values with the option schemaRegistryUrl"


class Avro:
    """Decodes records of one schema, given as JSON text."""

    def __init__(self, schema: str) -> None:
        self.schema = parse_avro(schema)
        try:
            self.kind = arrow_type(self.schema, {})
        except (KeyError, TypeError, ValueError) as error:
            raise no_schema(schema, error) from None

    def decode(self, column: pa.Array[Any]) -> Decoded:
        errors: dict[int, str] = {}
        rows: list[Any] = []
        for row, data in enumerate(column.to_pylist()):
            value = None
            if data is not None:
                try:
                    value = self.row(data)
                except Exception as error:  # invalid bytes may raise anything in the reader
                    text = f"not Avro of this schema: {error or type(error).__name__}"
                    errors[row] = text + explain_registry_head(data, self.row, remedy=REMEDY)
            rows.append(value)
        return Decoded(pa.array(rows, self.kind), errors)

    def row(self, data: bytes) -> Any:
        """Return one record; ValueError if bytes remain, because then it was written with another schema."""
        from fastavro import schemaless_reader

        stream = io.BytesIO(data)
        value = schemaless_reader(stream, self.schema, None)
        if stream.tell() != len(data):
            raise ValueError(f"{len(data) - stream.tell()} of {len(data)} bytes are left over")
        return value


def parse_avro(schema: str) -> Any:
    """Return the schema parsed by fastavro; ConfigError if it is not valid."""
    try:
        from fastavro import parse_schema
    except ImportError:
        raise ConfigError("the format avro needs fastavro: pip install 'ottla[schemas]'") from None
    try:
        return parse_schema(without_other_logical_types(json.loads(schema)))
    except Exception as error:
        raise no_schema(schema, error) from None


def no_schema(schema: str, error: Exception) -> ConfigError:
    """Return the error for a schema, with a readable text where the parser only gives a name."""
    from fastavro.schema import UnknownType

    reason = str(error)
    if isinstance(error, KeyError):
        reason = f"it has no {reason} where there must be one"
    elif isinstance(error, UnknownType):
        reason = f"there is no type {reason}"
    return ConfigError(f"{schema[:200]!r} is not an Avro schema: {reason}")


def without_other_logical_types(schema: Any) -> Any:
    """Return the schema without logical types that fastavro would decode to objects that no column supports."""
    if isinstance(schema, list):
        return [without_other_logical_types(branch) for branch in schema]
    if not isinstance(schema, dict):
        return schema
    kept = dict(schema)
    logical = kept.get("logicalType")
    if logical is not None and logical != "decimal" and (kept.get("type"), logical) not in LOGICAL:
        del kept["logicalType"]
    for part in ("type", "items", "values"):
        if part in kept:
            kept[part] = without_other_logical_types(kept[part])
    if "fields" in kept:
        kept["fields"] = [without_other_logical_types(one) for one in kept["fields"]]
    return kept


def arrow_type(schema: Any, named: Mapping[str, Any]) -> Any:
    """Return the type of a schema's values; `named` has the types defined so far, None for a definition in progress."""
    if isinstance(schema, list):
        return union_type(schema, named)
    if isinstance(schema, str):
        return named_type(schema, named)
    name = schema["type"]
    if isinstance(name, dict | list):
        return arrow_type(name, named)
    if name in ("record", "error"):
        return record_type(schema, named)
    if name == "array":
        return pa.list_(arrow_type(schema["items"], named))
    if name == "map":
        return pa.map_(pa.string(), arrow_type(schema["values"], named))
    if schema.get("logicalType") == "decimal":
        kind: Any = pa.decimal128(schema["precision"], schema.get("scale", 0))
    else:
        kind = LOGICAL.get((name, schema.get("logicalType"))) or named_type(name, named)
    return define(schema, kind, named)


def record_type(schema: Any, named: Any) -> Any:
    define(schema, None, named)
    fields = [pa.field(one["name"], arrow_type(one["type"], named)) for one in schema["fields"]]
    return define(schema, pa.struct(fields), named)


def define(schema: Any, kind: Any, named: Any) -> Any:
    """Store the type under its name, if it has one."""
    if "name" in schema:
        named[schema["name"]] = kind
    return kind


def named_type(name: str, named: Mapping[str, Any]) -> Any:
    kind = PRIMITIVES.get(name) or named.get(name)
    if kind is None:
        reason = "it contains itself" if name in named else "its only value is null"
        raise ConfigError(f"the Avro type {name} {PROBLEM}: {reason}")
    return kind


def union_type(branches: list[Any], named: Mapping[str, Any]) -> Any:
    """Return the single type of a union other than null."""
    kinds = [branch for branch in branches if branch != "null"]
    wider = WIDER.get(frozenset(kinds)) if all(isinstance(kind, str) for kind in kinds) else None
    if len(kinds) != 1 and wider is None:
        raise ConfigError(f"the Avro union {json.dumps(branches, default=str)[:100]} {PROBLEM}: it has several types")
    return arrow_type(wider or kinds[0], named)
