"""Values with a schema's id in a registry, in front or in the headers, decoded to columns of one reader's schema.

The column types of Avro and Protobuf are those of values without ids. Requires the extra `schemas`.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from ottla.config import Password
from ottla.records.arrow import binary_column
from ottla.schemas.avro_schema import parse_avro
from ottla.schemas.calls import RegistryCalls
from ottla.schemas.clients import SchemaRegistryClient
from ottla.schemas.config import registry_config
from ottla.schemas.exchange import Exchange
from ottla.schemas.protobuf_schema import find_message, find_message_by_name, load_file
from ottla.schemas.registered_tables import FieldFormat, RegisteredTables
from ottla.schemas.registries import Registries
from ottla.schemas.serde import resolve_references, run_without_registry
from ottla.schemas.values import Schema
from ottla.spark.formats.avro import WIDER, Avro, without_other_logical_types
from ottla.spark.formats.format import Decoded

_registries = Registries()
"""The registries of this worker process. A worker runs many tasks, and each schema is requested once."""


def open_registry(settings: Mapping[str, Any]) -> tuple[SchemaRegistryClient, RegisteredTables]:
    """Return this process's client for these settings, and its decoders."""
    plain = {name: value.value if isinstance(value, Password) else value for name, value in settings.items()}
    return _registries.open_blocking(plain)


class RegisteredAvro:
    """Decodes registered values; `reader` is a result of `readable_schema`."""

    def __init__(self, settings: Mapping[str, Any], reader: str) -> None:
        self.kind = Avro(reader).kind
        self._reader = Schema(reader)
        self._client, self._tables = open_registry(settings)

    def decode(self, column: pa.Array[Any]) -> Decoded:
        chosen = FieldFormat("avro", self._reader)
        exchange = self._tables.decode_values(binary_column(column, "value"), None, "value", chosen)
        values, errors = self._client.run(exchange)
        return cast_rows(values, self.kind, errors)


class RegisteredValues:
    """Decodes registered JSON or Protobuf; `reader` is a result of `describe_reader`."""

    def __init__(self, settings: Mapping[str, Any], form: str, reader: str) -> None:
        given = json.loads(reader)
        self._chosen = FieldFormat(form, Schema.from_dict(given["schema"]), given["message"], is_for_spark=True)
        self._client, self._tables = open_registry(settings)
        self.kind = spark_type(self._client.run(self._tables.find_kind(self._chosen)))

    def decode(self, column: pa.Array[Any]) -> Decoded:
        exchange = self._tables.decode_values(binary_column(column, "value"), None, "value", self._chosen)
        values, errors = self._client.run(exchange)
        return cast_rows(values, self.kind, errors)


def describe_reader(form: str, schema: Schema, message: str | None, client: SchemaRegistryClient) -> str:
    """Return a reader's schema of JSON or Protobuf for the tasks. Raises SerializationError if it cannot be read."""
    if form == "protobuf":
        file = client.run(load_file(schema, client.calls))
        message = (
            find_message(file, [0]).full_name if message is None else find_message_by_name(file, message).full_name
        )
    return json.dumps({"form": form, "schema": schema.to_dict(), "message": message})


def find_reader_type(reader: Mapping[str, Any]) -> Any:
    """Return the type of columns of a result of `describe_reader`, as JSON; None if it refers to other schemas."""
    schema = Schema.from_dict(reader["schema"])
    if schema.references:
        return None
    chosen = FieldFormat(reader["form"], schema, reader["message"], is_for_spark=True)
    # Without references, nothing is requested.
    exchange = RegisteredTables(
        RegistryCalls(registry_config("http://localhost"), time.monotonic, random.random)
    ).find_kind(chosen)
    return spark_type(run_without_registry(exchange))


def spark_type(kind: Any) -> Any:
    """Return the type in which Spark holds a column."""
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(one.name, spark_type(one.type)) for one in kind])
    if pa.types.is_list(kind):
        return pa.list_(spark_type(kind.value_type))
    if pa.types.is_map(kind):
        return pa.map_(spark_type(kind.key_type), spark_type(kind.item_type))
    if pa.types.is_dictionary(kind) or pa.types.is_null(kind):
        return pa.string()
    return {pa.uint32(): pa.int64(), pa.uint64(): pa.decimal128(20, 0)}.get(kind, kind)


def cast_rows(values: pa.Array[Any], kind: Any, errors: Mapping[int, str]) -> Decoded:
    """Return the values in Spark's types. A row with a value out of range is null and has an error."""
    try:
        return Decoded(values.cast(kind), errors)
    except pa.ArrowInvalid:
        pass
    pieces: list[Any] = []
    found = dict(errors)
    for row in range(len(values)):
        try:
            pieces.append(values.slice(row, 1).cast(kind))
        except pa.ArrowInvalid as error:
            found[row] = f"a value is out of range: {error}"
            pieces.append(pa.nulls(1, kind))
    return Decoded(pa.concat_arrays(pieces), found)


def readable_schema(schema: Schema, client: SchemaRegistryClient) -> str:
    """Return a reader's schema for columns: without references, and with only the logical types that columns support.

    Raises SerializationError if it is not a schema, and ConfigError if it cannot be a column.
    """
    text = json.dumps(widen_unions(without_other_logical_types(flat_schema(schema, client))))
    Avro(text)
    return text


def flat_schema(schema: Schema, client: SchemaRegistryClient) -> Any:
    """Return a schema as JSON without references. Raises SerializationError if it is not a schema."""
    return without_hints(client.run(parse_with_references(schema, client)))


def parse_with_references(schema: Schema, client: SchemaRegistryClient) -> Exchange[Any]:
    references = yield from resolve_references(schema, client.calls)
    return parse_avro(schema, references).root


def without_hints(schema: Any) -> Any:
    """Return a schema without the marks of fastavro's parser."""
    if not isinstance(schema, dict):
        return schema
    return {name: value for name, value in schema.items() if not name.startswith("__")}


def widen_unions(schema: Any) -> Any:
    """Return the schema with unions such as int and long as the wider type, as which such a column is read."""
    if isinstance(schema, list):
        branches = [widen_unions(branch) for branch in schema]
        kinds = [branch for branch in branches if branch != "null"]
        wider = WIDER.get(frozenset(kinds)) if all(isinstance(kind, str) for kind in kinds) else None
        if wider is None:
            return branches
        return list(dict.fromkeys(branch if branch == "null" else wider for branch in branches))
    if not isinstance(schema, dict):
        return schema
    widened = dict(schema)
    for part in ("type", "items", "values"):
        if part in widened:
            widened[part] = widen_unions(widened[part])
    if "fields" in widened:
        widened["fields"] = [widen_unions(one) for one in widened["fields"]]
    return widened
