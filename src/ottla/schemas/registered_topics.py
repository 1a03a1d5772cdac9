"""Registered keys and values of a topic's table as columns, for `ottla sql`.

A column is registered if one of its values begins with a schema id; then all of them must. Avro becomes typed columns of the
newest version of the topic's subject. JSON, Protobuf, and Avro with unions of several types become JSON text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, NoReturn

from ottla.errors import SerializationError
from ottla.extras import extra
from ottla.records.arrow import binary_column
from ottla.schemas.clients import SchemaRegistryClient
from ottla.schemas.errors import SchemaRegistryError
from ottla.schemas.json_values import JsonReader
from ottla.schemas.registered_tables import FieldFormat, RegisteredTables
from ottla.schemas.values import Schema
from ottla.schemas.wire import has_schema_id

with extra("arrow"):
    import pyarrow as pa
    import pyarrow.compute as pc

NOT_FOUND = 404
REMEDY = "read the topic without a registry, or only a part of it"


class DecodedTable(NamedTuple):
    """A topic's table with decoded columns."""

    table: Any
    in_json: frozenset[str]
    """The columns that are JSON text."""


class RegisteredTopics:
    """Decodes the tables of topics with one registry."""

    def __init__(self, client: SchemaRegistryClient) -> None:
        self._client = client
        self._tables = RegisteredTables(client.calls)

    def decode(self, table: Any, topic: str) -> DecodedTable:
        """Return the table with registered keys and values decoded. Raise SerializationError for a value that cannot be read."""
        in_json: set[str] = set()
        for field in ("key", "value"):
            ids = find_ids(table, field)
            if not ids:
                continue
            schemas = {number: self._fetch(table, field, head, number) for head, number in ids.items()}
            column = None
            if all(schema.schema_type == "AVRO" for schema in schemas.values()):
                column = self._decode_avro(table, field, self._find_reader(topic, field, schemas))
            if column is None or not is_supported(column.type):
                column = self._decode_text(table, field, topic, schemas)
                in_json.add(field)
            table = table.set_column(table.column_names.index(field), field, column)
        return DecodedTable(table, frozenset(in_json))

    def _fetch(self, table: Any, field: str, head: bytes, number: int) -> Schema:
        try:
            return self._client.get_schema(number)
        except SchemaRegistryError as error:
            if error.http_status_code != NOT_FOUND:
                raise
        raise_unreadable(
            table,
            field,
            find_row(table, field, head),
            f"begins with schema id {number}, which the registry does not have",
        )

    def _find_reader(self, topic: str, field: str, schemas: Mapping[int, Schema]) -> Schema:
        """Return the newest version of the topic's subject; without one, the newest schema of the values."""
        try:
            latest = self._client.get_latest_version(f"{topic}-{field}").schema
        except SchemaRegistryError as error:
            if error.http_status_code != NOT_FOUND:
                raise
        else:
            if latest.schema_type == "AVRO":
                return latest
        return schemas[max(schemas)]

    def _decode_avro(self, table: Any, field: str, reader: Schema) -> Any:
        chunks, first = [], 0
        for chunk in table.column(field).chunks:
            column = binary_column(chunk, field)
            decoding = self._tables.decode_values(column, None, field, FieldFormat("avro", reader))
            values, errors = self._client.run(decoding)
            for row in sorted(errors)[:1]:
                raise_unreadable(table, field, first + row, f"cannot be read: {errors[row]}")
            chunks.append(values)
            first += len(chunk)
        return pa.chunked_array(chunks)

    def _decode_text(self, table: Any, field: str, topic: str, schemas: Mapping[int, Schema]) -> Any:
        forms = {number: str(schema.schema_type).lower() for number, schema in schemas.items()}
        readers = {form: JsonReader(form, self._client) for form in set(forms.values())}
        texts: list[str | None] = []
        for row, data in enumerate(values_of(table, field)):
            try:
                text = data and readers[forms[int.from_bytes(data[1:5], "big")]].deserialize_record(
                    data, topic, field, ()
                )
            except SerializationError as error:
                raise_unreadable(table, field, row, f"cannot be read: {error}")
            texts.append(None if text is None else text.decode())
        return pa.chunked_array([pa.array(texts, pa.string())])


def is_supported(kind: Any) -> bool:
    """Return True if DuckDB can read an Arrow type; it has no unions, and decimals of at most 38 digits."""
    if pa.types.is_union(kind) or pa.types.is_decimal256(kind):
        return False
    if pa.types.is_map(kind):
        return is_supported(kind.item_type)
    return all(is_supported(kind.field(index).type) for index in range(kind.num_fields))


def find_ids(table: Any, field: str) -> dict[bytes, int]:
    """Return the schema ids of a column by the first bytes of values; empty if no value has one.

    Raise SerializationError if only some values have one.
    """
    column = table.column(field)
    if not (pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type)):
        return {}
    heads = [head for head in pc.unique(pc.binary_slice(column, 0, 5)).to_pylist() if head is not None]
    ids = {head: int.from_bytes(head[1:], "big") for head in heads if has_schema_id(head)}
    others = [head for head in heads if head not in ids]
    if ids and others:
        row = min(find_row(table, field, head) for head in others)
        raise_unreadable(table, field, row, "has no schema id in front of it, and others have one")
    return ids


def find_row(table: Any, field: str, head: bytes) -> int:
    """Return the first row whose value begins with these bytes, and has no more if they are fewer than five."""
    return next(row for row, data in enumerate(values_of(table, field)) if data is not None and data[:5] == head)


def values_of(table: Any, field: str) -> Iterator[bytes | None]:
    return (one.as_py() for chunk in table.column(field).chunks for one in chunk)


def raise_unreadable(table: Any, field: str, row: int, problem: str) -> NoReturn:
    """Raise the error of the value in a row."""
    where = table.slice(row, 1).select(["topic", "partition", "offset"]).to_pylist()[0]
    place = f"the {field} at offset {where['offset']} of {where['topic']}-{where['partition']}"
    raise SerializationError(f"{place} {problem}; {REMEDY}")
