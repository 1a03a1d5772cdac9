"""Encodes keys and values with registered schemas: the driver registers the schema, and tasks encode rows without the registry."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import pyarrow as pa
from pyspark.sql.types import DataType, StructType

from ottla.errors import ConfigError, SerializationError
from ottla.spark.options import LATEST, SinkOptions
from ottla.spark.sink.derived_schemas import derived_schema

if TYPE_CHECKING:
    from ottla.schemas import Schema, SchemaRegistryClient, SchemaRegistryError
    from ottla.schemas.serde import Encoder

CONFLICT, NOT_FOUND = 409, 404


@dataclass(frozen=True)
class Encoding:
    """A registered schema, sent to the tasks."""

    field: str
    """The column: key or value."""
    form: str
    """The format: avro, json or protobuf."""
    schema: str
    """The schema as `describe_for_tasks` returns it; it needs no others."""
    schema_id: int

    def encode(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the batches with encoded values. Raises SerializationError for a row that does not fit the schema."""
        from ottla.schemas.avro import AvroEncoder
        from ottla.schemas.avro_column_encoder import AvroColumnEncoder, encode_objects

        encoder, indexes = self._make_encoder()
        prefix = b"\0" + self.schema_id.to_bytes(4, "big") + indexes
        first = 0

        def encode_row(value: Any, row: int) -> bytes:
            try:
                return encoder(value, prefix)
            except SerializationError as error:
                where = f"row {first + row} of this task does not fit schema {self.schema_id}"
                raise SerializationError(f"{where}: {error}; correct the row, or {self.field}Schema") from None

        columns = AvroColumnEncoder(encoder.schema, prefix, encode_row) if isinstance(encoder, AvroEncoder) else None
        for batch in batches:
            table = pa.Table.from_batches([batch])
            at = table.schema.get_field_index(self.field)
            column = table.column(at)
            values = encode_objects(column, encode_row) if columns is None else columns.encode(column)
            yield from table.set_column(at, pa.field(self.field, pa.binary()), values).to_batches()
            first += batch.num_rows

    def _make_encoder(self) -> tuple[Encoder, bytes]:
        """Return the encoder of a row, and the message indexes in front of each value."""
        if self.form == "json":
            from ottla.schemas.json_rows import JsonRowEncoder

            return JsonRowEncoder.from_text(self.schema), b""
        if self.form == "protobuf":
            from ottla.schemas.protobuf import message_indexes
            from ottla.schemas.protobuf_rows import ProtobufRowEncoder, from_text
            from ottla.schemas.wire import encode_indexes

            message = from_text(self.schema)
            return ProtobufRowEncoder(message), encode_indexes(message_indexes(message))
        from ottla.schemas import Schema
        from ottla.schemas.avro import AvroEncoder
        from ottla.schemas.avro_schema import parse_avro

        return AvroEncoder(parse_avro(Schema(self.schema)), False, False), b""


class ChosenSchema(NamedTuple):
    """The schema with which the values of a write are written."""

    client: SchemaRegistryClient
    subject: str
    schema: Schema
    schema_id: int | None
    """None if it has to be registered."""
    form: str
    field: str
    kind: DataType
    """The type of the column."""
    message: str | None
    """The full name of a Protobuf message; None for the first one of the schema."""
    named: str
    """Where the schema is from, for errors."""
    text: str = ""
    """The schema for the tasks; empty for a Protobuf schema that is not registered yet."""


def prepare_encodings(options: SinkOptions, schema: StructType) -> tuple[Encoding, ...]:
    """Register or look up the schemas of keys and values, on the driver; none if they are written unchanged."""
    chosen = [choose_schema(options, schema, field) for field in encoded_fields(options, schema)]
    return tuple(register_chosen(one) for one in chosen)


def encoded_fields(options: SinkOptions, schema: StructType) -> list[str]:
    """Return the encoded columns, of key and value."""
    fields = [field for field in ("key", "value") if getattr(options, f"{field}_format") != "raw"]
    if "key" in fields and "key" not in schema.names:
        raise ConfigError(
            f"option keyFormat = {options.key_format} needs a column 'key', and there is only {', '.join(schema.names)}"
        )
    return fields


def register_chosen(chosen: ChosenSchema) -> Encoding:
    """Register a schema if necessary."""
    from ottla.schemas import SchemaRegistryError

    number = chosen.schema_id
    try:
        if number is None:
            number = chosen.client.register_schema(chosen.subject, chosen.schema)
    except SchemaRegistryError as error:
        raise_refused(error, chosen.subject, chosen.field)
    return Encoding(chosen.field, chosen.form, chosen.text or describe_for_tasks(chosen, number), number)


def describe_for_tasks(chosen: ChosenSchema, number: int | None) -> str:
    """Return the schema as a text that needs no registry. Raises ConfigError if the rows do not have its fields."""
    from ottla.schemas.serde import resolve_references
    from ottla.spark.formats.registered import flat_schema

    client, schema = chosen.client, chosen.schema
    if chosen.form == "avro":
        flat = flat_schema(schema, client)
        check_fields(chosen, *avro_fields(flat))
        return json.dumps(flat)
    if chosen.form == "json":
        from ottla.schemas.json_rows import properties_of, to_text

        references = client.run(resolve_references(schema, client.calls))
        check_fields(chosen, *properties_of(schema, references))
        return to_text(schema, references)
    from ottla.schemas import protobuf_rows
    from ottla.schemas.protobuf_schema import SERIALIZED, find_message, find_message_by_name, load_file

    if number is None:  # only the registry makes descriptors of text, and the schema is not registered yet
        return ""
    file = client.run(load_file(client.get_schema(number, chosen.subject, SERIALIZED), client.calls))
    message = find_message(file, [0]) if chosen.message is None else find_message_by_name(file, chosen.message)
    check_fields(chosen, list(message.fields_by_name), [])
    return protobuf_rows.to_text(message)


def check_encodings(options: SinkOptions, schema: StructType) -> Mapping[str, Schema]:
    """Check that such rows can be written, without registering a schema. Return the schemas by subject."""
    found: dict[str, Schema] = {}
    for field in encoded_fields(options, schema):
        chosen = choose_schema(options, schema, field)
        if chosen.schema_id is None:
            check_compatible(chosen.client, chosen.subject, chosen.schema, field)
        found[chosen.subject] = chosen.schema
    return found


def check_subjects(options: SinkOptions) -> None:
    """Check the subjects of a write whose rows are not known yet, without registering a schema."""
    for field in ("key", "value"):
        if getattr(options, f"{field}_format") != "raw":
            check_subject(options, field)


def check_subject(options: SinkOptions, field: str) -> None:
    from ottla.schemas import Schema
    from ottla.spark.formats.registered import open_registry

    client, _ = open_registry(options.registry)
    subject, form = subject_of(options, field), getattr(options, f"{field}_format")
    version, given = getattr(options, f"{field}_schema_version"), getattr(options, f"{field}_schema")
    if version is not None or (given is None and not options.auto_register_schemas):
        find_written_version(client, subject, version or LATEST, form, field)
    elif given is None:
        client.get_schema_types()
    elif options.auto_register_schemas:
        check_compatible(client, subject, Schema(given, form.upper()), field)
    else:
        find_schema_id(client, subject, Schema(given, form.upper()), field)


def check_compatible(client: SchemaRegistryClient, subject: str, schema: Schema, field: str) -> None:
    """Raise ConfigError if the schema cannot become a version of the subject. The subject may not exist yet."""
    from ottla.schemas import SchemaRegistryError

    try:
        reasons = client.explain_compatibility(subject, schema)
    except SchemaRegistryError as error:
        if error.http_status_code != NOT_FOUND:
            raise
        return
    if reasons:
        raise ConfigError(incompatible_text(subject, "; ".join(reasons), field))


def find_schema_id(client: SchemaRegistryClient, subject: str, schema: Schema, field: str) -> int:
    """Return the id of a schema that the subject has; ConfigError if it does not have it."""
    from ottla.schemas import SchemaRegistryError

    try:
        number = client.lookup_schema(subject, schema).schema_id
    except SchemaRegistryError as error:
        raise_refused(error, subject, field)
    assert number is not None
    return number


def subject_of(options: SinkOptions, field: str) -> str:
    return getattr(options, f"{field}_subject") or f"{options.topic}-{field}"


def choose_schema(options: SinkOptions, schema: StructType, field: str) -> ChosenSchema:
    """Return the schema with which the keys or values of these rows are written, checked against the rows."""
    from ottla.schemas import Schema
    from ottla.spark.formats.registered import open_registry

    client, _ = open_registry(options.registry)
    kind, form = schema[field].dataType, getattr(options, f"{field}_format")
    subject, version = subject_of(options, field), getattr(options, f"{field}_schema_version")
    given: str | None = getattr(options, f"{field}_schema")
    named = f"the schema in {field}Schema"
    number: int | None = None
    if version is not None:
        wanted, number = find_written_version(client, subject, version, form, field)
        named = f"version {version} of subject {subject!r}"
    else:
        wanted = Schema(derived_schema(form, kind, field) if given is None else given, form.upper())
        number = None if options.auto_register_schemas else find_schema_id(client, subject, wanted, field)
    message = getattr(options, f"{field}_message")
    chosen = ChosenSchema(client, subject, wanted, number, form, field, kind, message, named)
    return chosen._replace(text=describe_for_tasks(chosen, number))


def find_written_version(
    client: SchemaRegistryClient, subject: str, version: str, form: str, field: str
) -> tuple[Schema, int]:
    """Return a version of the subject, and its id."""
    from ottla.schemas import SchemaRegistryError
    from ottla.schemas.serde import reject_rules

    # A process of Spark may be used for several queries, and versions may be registered in between.
    client.clear_latest_caches()
    try:
        found = client.get_latest_version(subject) if version == LATEST else client.get_version(subject, int(version))
    except SchemaRegistryError as error:
        if error.http_status_code != NOT_FOUND:
            raise
        which = f"subject {subject!r}" if version == LATEST else f"version {version} of subject {subject!r}"
        raise ConfigError(
            f"the registry has no {which} for {field}Format = {form}; register a schema, or set {field}Subject or {field}Schema"
        ) from None
    if found.schema.schema_type != form.upper():
        raise ConfigError(
            f"the schema of subject {subject!r} is {found.schema.schema_type}, and {field}Format = {form} writes "
            f"{form.upper()}; set another subject"
        )
    reject_rules(found.schema, subject)
    assert found.schema_id is not None
    return found.schema, found.schema_id


def raise_refused(error: SchemaRegistryError, subject: str, field: str) -> NoReturn:
    """Raise the error of a registration, with a remedy."""
    if error.http_status_code == CONFLICT:
        raise ConfigError(incompatible_text(subject, str(error), field)) from None
    if error.http_status_code == NOT_FOUND:
        raise ConfigError(
            f"subject {subject!r} does not have the schema of the rows ({error}), and autoRegisterSchemas is false; register "
            f"it, or set {field}Schema to a registered one"
        ) from None
    raise error


def incompatible_text(subject: str, reason: str, field: str) -> str:
    return (
        f"the schema of the rows is not compatible with subject {subject!r}: {reason}; change the columns, set {field}Schema, "
        "or change the compatibility of the subject"
    )


def avro_fields(schema: Any) -> tuple[list[str], list[str]]:
    """Return the fields of a record, and those without a default; none if the schema is not a record."""
    branches = schema if isinstance(schema, list) else [schema]
    records = [one for one in branches if isinstance(one, dict) and one.get("type") == "record"]
    fields = records[0]["fields"] if len(records) == 1 else []
    return [one["name"] for one in fields], [one["name"] for one in fields if "default" not in one]


def check_fields(chosen: ChosenSchema, fields: Sequence[str], required: Sequence[str]) -> None:
    """Raise ConfigError for fields that only the rows have, and for required fields that only the schema has."""
    kind, field = chosen.kind, chosen.field
    if not isinstance(kind, StructType) or not fields:
        return
    lost = [name for name in kind.names if name not in fields]
    missing = [name for name in required if name not in kind.names]
    if lost or missing:
        needed = "without a default" if chosen.form == "avro" else "as a required one"
        problem = f"has no field {lost[0]!r}" if lost else f"has the field {missing[0]!r} {needed}"
        remedy = f"drop it from the column {field}" if lost else f"add it to the column {field}"
        raise ConfigError(f"{chosen.named} {problem}, and the rows differ; {remedy}, or change the schema")
