"""Encode columns of a table as registered values, for `send_table`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ottla.errors import SerializationError
from ottla.extras import extra
from ottla.schemas.avro import OPTIONS, AvroEncoder, AvroWriting
from ottla.schemas.avro_column_encoder import AvroColumnEncoder, encode_objects
from ottla.schemas.calls import RegistryCalls
from ottla.schemas.context import SerializationContext
from ottla.schemas.exchange import Exchange
from ottla.schemas.registered_tables import FORMATS
from ottla.schemas.serde import SerializerCore, WriterFormat, checked_options
from ottla.schemas.values import Schema

with extra("arrow"):
    import pyarrow as pa

Fields = Mapping[str, tuple[str | None, str | None, str | Schema | None]]
"""For "key" and "value" the column, the format (None: unchanged), and the schema to register (None: the subject's newest)."""


def checked_fields(fields: Fields) -> Fields:
    """Return the arguments of `send_table`, checked."""
    for field, (_, form, schema) in fields.items():
        if form is None and schema is not None:
            raise ValueError(f"{field}_schema = {schema!r:.80} needs {field}_format, such as 'avro'")
        if form is not None and form not in FORMATS:
            raise ValueError(f"{field}_format = {form!r}: must be one of {', '.join(FORMATS)}")
    if all(form is None for _, form, _ in fields.values()):
        raise ValueError("registry is for registered values: pass value_format='avro', or key_format")
    return fields


def encode_columns(
    table: pa.Table | pa.RecordBatch,
    topic: str,
    fields: Fields,
    calls: RegistryCalls,
) -> Exchange[pa.Table]:
    """Return the table with encoded columns."""
    if not isinstance(table, pa.Table | pa.RecordBatch):
        raise SerializationError(f"a {type(table).__name__} is not a table; pass a pyarrow Table or RecordBatch")
    encoded = table if isinstance(table, pa.Table) else pa.Table.from_batches([table])
    for field, (column, form, schema) in fields.items():
        if form is None:
            continue
        if column is None or encoded.schema.names.count(column) != 1:
            names = ", ".join(encoded.schema.names)
            raise SerializationError(f"there is no column {column!r} for the {field}; the columns are {names}")
        at = encoded.schema.get_field_index(column)
        values = yield from encode_column(encoded.column(at), SerializationContext(topic, field), form, schema, calls)
        encoded = encoded.set_column(at, pa.field(column, pa.binary()), values)
    return encoded


def encode_column(
    column: pa.ChunkedArray[Any],
    context: SerializationContext,
    form: str,
    schema: str | Schema | None,
    calls: RegistryCalls,
) -> Exchange[pa.ChunkedArray[Any]]:
    """Return the values of a column with their schema ids."""
    options = checked_options({"use.latest.version": True} if schema is None else None, OPTIONS)
    core = SerializerCore(writer_format(form, schema, options), calls, options, None)
    prepared = yield from core.prepare(None, context)

    def encode_row(value: Any, row: int) -> bytes:
        try:
            return core.encode(prepared, value, context)
        except SerializationError as error:
            raise SerializationError(f"row {row} of the {context.field}: {error}") from error.__cause__

    if isinstance(prepared.encode, AvroEncoder):
        return AvroColumnEncoder(prepared.encode.schema, prepared.prefix or b"", encode_row).encode(column)
    return encode_objects(column, encode_row)


def writer_format(form: str, schema: str | Schema | None, options: Mapping[str, Any]) -> WriterFormat:
    """Return the part of a serializer that depends on the format."""
    given = Schema(schema.strip(), form.upper()) if isinstance(schema, str) else schema
    if given is not None and not isinstance(given, Schema):
        raise TypeError(f"schema = {schema!r}: must be a schema as text, or a Schema")
    if form == "avro":
        return AvroWriting(given, options)
    if form == "json":
        from ottla.schemas.json_rows import JsonRowWriting

        return JsonRowWriting(given)
    from ottla.schemas.protobuf_rows import ProtobufRowWriting

    return ProtobufRowWriting(given)
