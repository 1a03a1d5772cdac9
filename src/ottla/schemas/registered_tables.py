"""Decode the keys and values of polled columns by their schema ids, for `poll_arrow`.

The reader's schema of a topic decides the columns: a named version or a given schema, else the newest version of the
topic's subject. If that subject does not exist, it is the newest schema among the values that were polled first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from msgspec import Struct

from ottla.errors import SerializationError
from ottla.extras import extra
from ottla.model import TopicPartition
from ottla.records.arrow import schema, to_record_batch
from ottla.records.binary_column import BinaryColumn
from ottla.records.columns import Columns
from ottla.schemas.arrow_columns import ColumnDecoder, find_schema_keys
from ottla.schemas.avro_columns import AvroColumns
from ottla.schemas.avro_schema import parse_avro
from ottla.schemas.calls import RegistryCalls
from ottla.schemas.column_reader import describe_key
from ottla.schemas.errors import SchemaRegistryError
from ottla.schemas.exchange import Exchange
from ottla.schemas.json_columns import JsonColumns
from ottla.schemas.protobuf_columns import ProtobufColumns
from ottla.schemas.protobuf_schema import SERIALIZED, find_message, find_message_by_name, load_file
from ottla.schemas.serde import reject_rules, resolve_references
from ottla.schemas.values import RegisteredSchema, Schema
from ottla.schemas.wire import read_id

with extra("arrow"):
    import pyarrow as pa

MODES = ("raise", "null")
NOT_FOUND = 404
Reader = int | str | Schema | None
"""A version of the topic's subject, a schema, or None for the newest version."""
Chunks = Iterable[tuple[TopicPartition, Columns]]


class TableFormat(Protocol):
    """The part of the decoding that depends on the format."""

    schema_type: str
    fetch_format: str | None
    """The form in which schemas are requested."""
    has_indexes: bool

    def make_columns(
        self, reader: Schema, first: tuple[bytes, Schema] | None, chosen: FieldFormat, calls: RegistryCalls
    ) -> Exchange[Any]:
        """Return the decoder for a reader's schema; `first` is a key among the values and its schema."""
        ...

    def add_writer(self, columns: Any, key: bytes, writer: Schema, calls: RegistryCalls) -> Exchange[None]: ...


class AvroTables:
    """Values of all versions are converted by Avro's rules."""

    schema_type = "AVRO"
    fetch_format: str | None = None
    has_indexes = False

    def make_columns(
        self, reader: Schema, first: tuple[bytes, Schema] | None, chosen: FieldFormat, calls: RegistryCalls
    ) -> Exchange[AvroColumns]:
        return AvroColumns(parse_avro(reader, (yield from resolve_references(reader, calls))))

    def add_writer(self, columns: AvroColumns, key: bytes, writer: Schema, calls: RegistryCalls) -> Exchange[None]:
        columns.add_writer(key, parse_avro(writer, (yield from resolve_references(writer, calls))))


class JsonTables:
    """Values are read as the reader's schema has them, whichever version wrote them."""

    schema_type = "JSON"
    fetch_format: str | None = None
    has_indexes = False

    def make_columns(
        self, reader: Schema, first: tuple[bytes, Schema] | None, chosen: FieldFormat, calls: RegistryCalls
    ) -> Exchange[JsonColumns]:
        return JsonColumns(reader, (yield from resolve_references(reader, calls)))

    def add_writer(self, columns: JsonColumns, key: bytes, writer: Schema, calls: RegistryCalls) -> Exchange[None]:
        yield from ()
        columns.add_writer(key)


class ProtobufTables:
    """Messages are read as the reader's message of the same name. Without values, it is the first of the file."""

    schema_type = "PROTOBUF"
    fetch_format: str | None = SERIALIZED
    has_indexes = True

    def make_columns(
        self, reader: Schema, first: tuple[bytes, Schema] | None, chosen: FieldFormat, calls: RegistryCalls
    ) -> Exchange[ProtobufColumns]:
        file = yield from load_file(reader, calls)
        name = chosen.message
        if name is None and first is not None:
            name = find_message((yield from load_file(first[1], calls)), indexes_of(first[0])).full_name
        message = find_message(file, [0]) if name is None else find_message_by_name(file, name)
        return ProtobufColumns(message, not chosen.is_for_spark, not chosen.is_for_spark)

    def add_writer(self, columns: ProtobufColumns, key: bytes, writer: Schema, calls: RegistryCalls) -> Exchange[None]:
        columns.add_writer(key, find_message((yield from load_file(writer, calls)), indexes_of(key)).full_name)


def indexes_of(key: bytes) -> Sequence[int]:
    """Return the message indexes of a key."""
    return read_id(key, True).message_indexes or ()


TABLES: Mapping[str, TableFormat] = {"avro": AvroTables(), "json": JsonTables(), "protobuf": ProtobufTables()}
FORMATS = tuple(TABLES)


class FieldFormat(Struct, frozen=True):
    """How a key or value is decoded."""

    form: str
    reader: Reader
    message: str | None = None
    """The full name of a Protobuf message; None for that of the first values."""
    is_for_spark: bool = False
    """True for the columns of Spark's `from_protobuf`: null instead of zeros, and wrappers as structs."""


class RegisteredFormats(Struct, frozen=True):
    """How keys and values are decoded."""

    fields: Mapping[str, FieldFormat]
    """The decoded columns: "key", "value"."""
    decode_errors: str


def registered_formats(
    key_format: str | None, value_format: str | None, key_schema: Reader, value_schema: Reader, decode_errors: str
) -> RegisteredFormats:
    """Return the checked arguments of `poll_arrow`."""
    fields: dict[str, FieldFormat] = {}
    for field, form, reader in (("key", key_format, key_schema), ("value", value_format, value_schema)):
        if form is None:
            if reader is not None:
                raise ValueError(f"{field}_schema = {reader!r:.80} needs {field}_format, such as 'avro'")
            continue
        if reader is not None and not isinstance(reader, int | str | Schema):
            raise TypeError(f"{field}_schema = {reader!r}: must be a version, or a schema")
        if form not in FORMATS:
            raise ValueError(f"{field}_format = {form!r}: must be one of {', '.join(FORMATS)}")
        fields[field] = FieldFormat(form, reader)
    if not fields:
        raise ValueError(
            "registry and decode_errors are for registered values: pass value_format='avro', or key_format"
        )
    if decode_errors not in MODES:
        raise ValueError(f"decode_errors = {decode_errors!r}: must be one of {', '.join(MODES)}")
    return RegisteredFormats(fields, decode_errors)


class TopicReader:
    """The decoder of one topic's keys or values."""

    def __init__(self, reader_id: int | None, columns: ColumnDecoder) -> None:
        self.reader_id = reader_id
        self.columns = columns


class RegisteredTables:
    """Decodes polled columns. Decoders are kept, so that each pair of schemas is resolved once."""

    def __init__(self, calls: RegistryCalls) -> None:
        self._calls = calls
        self._readers: dict[Any, TopicReader] = {}

    def decode(
        self,
        chunks: Chunks,
        topics: Iterable[str],
        formats: RegisteredFormats,
        include_headers: bool,
        only: tuple[str, ...] | None,
    ) -> Exchange[pa.Table]:
        """Return the chunks as a table. Without chunks, the table has the columns of `topics`."""
        batches: list[pa.RecordBatch] = []
        for tp, columns in chunks:
            batch = to_record_batch(columns, *tp, with_headers=include_headers, only=only)
            for field in formats.fields:
                if field in batch.schema.names:
                    values = yield from self._decode_column(tp, field, columns, formats)
                    at = batch.schema.get_field_index(field)
                    batch = batch.set_column(at, pa.field(field, values.type), values)
            batches.append(batch)
        if batches:
            return table_of(batches)
        shape = schema(include_headers, "ms", only)
        for field, chosen in formats.fields.items():
            if field in shape.names:
                kind = yield from self._empty_kind(sorted(topics), field, chosen)
                shape = shape.set(shape.get_field_index(field), pa.field(field, kind))
        return shape.empty_table()

    def find_kind(self, chosen: FieldFormat) -> Exchange[pa.DataType]:
        """Return the type of columns of a given reader's schema."""
        known = yield from self._prepare("", "value", BinaryColumn.of_nulls(0), None, chosen)
        assert known is not None
        return known.columns.kind

    def decode_values(
        self, column: BinaryColumn, headers: BinaryColumn | None, field: str, chosen: FieldFormat
    ) -> Exchange[tuple[pa.Array[Any], dict[int, str]]]:
        """Return the values as columns of a given reader's schema, and the errors of rows.

        A writer's schema that cannot be used, such as one of another format, is an error of its rows only.
        """
        known = yield from self._prepare("", field, column, headers, chosen, is_strict=False)
        if known is None:
            return pa.nulls(column.count), {}
        return known.columns.decode(column, headers, field)

    def _decode_column(
        self, tp: TopicPartition, field: str, columns: Columns, formats: RegisteredFormats
    ) -> Exchange[pa.Array[Any]]:
        column = columns.values if field == "value" else columns.keys
        headers = columns.raw_headers
        reader = yield from self._prepare(tp.topic, field, column, headers, formats.fields[field])
        if reader is None:
            values: pa.Array[Any] = pa.nulls(column.count)
            errors: dict[int, str] = {}
            if column.null_count < column.count:
                row = next(row for row in range(column.count) if column.size(row) >= 0)
                errors = {row: "there is no schema id in front of it, and the registry has no schema for the topic"}
        else:
            values, errors = reader.columns.decode(column, headers, field)
        if errors and formats.decode_errors == "raise":
            raise unreadable_error(tp, field, columns, errors)
        return values

    def _prepare(
        self,
        topic: str,
        field: str,
        column: BinaryColumn,
        headers: BinaryColumn | None,
        chosen: FieldFormat,
        is_strict: bool = True,
    ) -> Exchange[TopicReader | None]:
        """Return the decoder with all schemas of the column; None if there is no schema at all."""
        tables = TABLES[chosen.form]
        keys = find_schema_keys(column, headers, field, tables.has_indexes)
        place = (topic, field, chosen)
        known = self._readers.get(place)
        if known is None or chosen.reader is None:
            found = yield from self._choose(known, topic, field, keys, chosen, is_strict)
            if found is None:
                return None
            if keys or chosen.message or not tables.has_indexes:  # the message of the first values is kept
                self._readers[place] = found
            known = found
        for key in keys:
            if known.columns.knows(key):
                continue
            try:
                writer = yield from self._fetch(key, chosen)
                if writer is not None:
                    yield from tables.add_writer(known.columns, key, writer, self._calls)
            except SerializationError as error:
                if is_strict:
                    raise
                known.columns.add_unreadable(key, str(error))
        return known

    def _choose(
        self,
        known: TopicReader | None,
        topic: str,
        field: str,
        keys: Sequence[bytes],
        chosen: FieldFormat,
        is_strict: bool,
    ) -> Exchange[TopicReader | None]:
        """Return the decoder for the reader's schema: the known one if the schema is still the newest."""
        tables, wanted = TABLES[chosen.form], chosen.reader
        if isinstance(wanted, str | Schema):
            given = wanted if isinstance(wanted, Schema) else Schema(wanted, tables.schema_type)
            return (yield from self._make_reader(None, given, keys, chosen, is_strict))
        subject = f"{topic}-{field}"
        found: RegisteredSchema | None = None
        if wanted is not None:
            found = yield from self._calls.version(subject, wanted, True, tables.fetch_format)
        else:
            try:
                found = yield from self._calls.latest(subject, tables.fetch_format)
            except SchemaRegistryError as error:
                if error.http_status_code != NOT_FOUND:
                    raise
        if found is None:
            if known is not None or not keys:
                return known
            newest = yield from self._fetch(keys[-1], chosen)
            if newest is None:
                return None
            return (yield from self._make_reader(None, newest, keys[-1:], chosen, is_strict))
        if known is not None and known.reader_id == found.schema_id:
            return known
        reject_rules(found.schema, subject)
        check_type(found.schema, f"schema {found.schema_id}", chosen)
        return (yield from self._make_reader(found.schema_id, found.schema, keys, chosen, is_strict))

    def _make_reader(
        self, reader_id: int | None, reader: Schema, keys: Sequence[bytes], chosen: FieldFormat, is_strict: bool
    ) -> Exchange[TopicReader]:
        tables = TABLES[chosen.form]
        first: tuple[bytes, Schema] | None = None
        for key in keys if tables.has_indexes and chosen.message is None else ():
            try:
                writer = yield from self._fetch(key, chosen)
            except SerializationError:
                if is_strict:
                    raise
                continue
            if writer is not None:
                first = key, writer
                break
        return TopicReader(reader_id, (yield from tables.make_columns(reader, first, chosen, self._calls)))

    def _fetch(self, key: bytes, chosen: FieldFormat) -> Exchange[Schema | None]:
        """Return the schema of a key; None if the registry does not have it."""
        found, form = read_id(key, False), TABLES[chosen.form].fetch_format
        try:
            if found.id is not None:
                registered = yield from self._calls.schema_by_id(found.id, None, form, None)
            else:
                registered = yield from self._calls.schema_by_guid(str(found.guid), form)
        except SchemaRegistryError as error:
            if error.http_status_code == NOT_FOUND:
                return None
            raise
        check_type(registered.schema, f"schema {describe_key(key)}", chosen)
        reject_rules(registered.schema, registered.subject)
        return registered.schema

    def _empty_kind(self, topics: Sequence[str], field: str, chosen: FieldFormat) -> Exchange[pa.DataType]:
        """Return the type of a column without rows; null if no schema is known."""
        for topic in topics:
            known = self._readers.get((topic, field, chosen))
            reader = yield from self._prepare(topic, field, BinaryColumn.of_nulls(0), None, chosen)
            reader = known if known is not None and TABLES[chosen.form].has_indexes else reader
            if reader is not None:
                return reader.columns.kind
        return pa.null()


def check_type(found: Schema, name: str, chosen: FieldFormat) -> None:
    """Raise SerializationError for a schema of another format."""
    wanted = TABLES[chosen.form].schema_type
    if found.schema_type != wanted:
        raise SerializationError(f"{name} is {found.schema_type}, not {wanted}; read the values as bytes")


def unreadable_error(tp: TopicPartition, field: str, columns: Columns, errors: Mapping[int, str]) -> SerializationError:
    """Return the error for the first value that cannot be read."""
    row = min(errors)
    where = f"at offset {columns.offsets[row]}" if len(columns.offsets) else f"in row {row}"
    others = f" ({len(errors) - 1} more follow)" if len(errors) > 1 else ""
    return SerializationError(
        f"the {field} {where} of {tp} cannot be read: {errors[row]}{others}; pass decode_errors='null' to read such values as null"
    )


def table_of(batches: list[pa.RecordBatch]) -> pa.Table:
    """Return one table of batches. Raises SerializationError if their types differ."""
    for batch in batches[1:]:
        if batch.schema != batches[0].schema:
            names = {str(one.column("topic")[0]) for one in batches if "topic" in one.schema.names and one.num_rows}
            where = f" ({', '.join(sorted(names))})" if names else ""
            raise SerializationError(
                f"the polled topics{where} have different schemas, which one table cannot hold; poll each with a consumer of "
                "its own, or pass value_schema"
            )
    return pa.Table.from_batches(batches)
