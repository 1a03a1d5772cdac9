"""Serializers and deserializers for Avro, with Confluent's options."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from typing import Any

from ottla.errors import SerializationError
from ottla.extras import extra
from ottla.schemas.avro_schema import AvroSchema, build_writer, explain, has_unbounded_array, parse_avro
from ottla.schemas.avro_writer import Writer
from ottla.schemas.calls import RegistryCalls
from ottla.schemas.clients import AsyncSchemaRegistryClient, SchemaRegistryClient
from ottla.schemas.context import SerializationContext
from ottla.schemas.exchange import Exchange
from ottla.schemas.objects import to_plain
from ottla.schemas.serde import (
    DESERIALIZER_OPTIONS,
    SERIALIZER_OPTIONS,
    AsyncDeserializer,
    AsyncSerializer,
    Decoder,
    Deserializer,
    Encoder,
    Register,
    Serializer,
    checked_options,
    converter,
    record_name_of,
    resolve_references,
)
from ottla.schemas.values import Schema

with extra("schemas"):
    from fastavro import schemaless_reader, schemaless_writer
    from fastavro.validation import ValidationError, validate

OPTIONS = {**SERIALIZER_OPTIONS, "validate.strict": False, "validate.strict.allow.default": False}
ToDict = Callable[[Any, SerializationContext], Any]
FromDict = Callable[[Any, SerializationContext], Any]
AVRO = "AVRO"


def avro_schema(schema: str | Schema | None) -> Schema | None:
    """Return a schema given as text or as a `Schema`."""
    if schema is None or isinstance(schema, Schema):
        return schema
    if not isinstance(schema, str):
        raise TypeError(f"schema_str = {schema!r}: must be an Avro schema as text, or a Schema")
    return Schema(schema.strip(), AVRO)


class AvroEncoder:
    """Encodes values with one schema: by the compiled writer, and by fastavro what that does not know."""

    def __init__(self, schema: AvroSchema, strict: bool, allow_default: bool) -> None:
        self.schema = schema
        self._writer: Writer | None = None if strict or allow_default else build_writer(schema)
        self._options: dict[str, Any] = {"strict": strict, "strict_allow_default": allow_default}
        self._is_bytes = schema.is_plain_bytes

    def __call__(self, obj: Any, prefix: bytes) -> bytes:
        plain = obj if type(obj) is dict else to_plain(obj)
        if self._is_bytes:  # Confluent's serializers write these without a length
            return prefix + (plain if isinstance(plain, bytes) else str(plain).encode())
        if self._writer is not None:
            try:
                written = self._writer.write(plain, prefix)
            except Exception:  # of a logical type's conversion; fastavro raises it again, in its own words
                written = None
            if written is not None:
                return written
        return self._write_slowly(plain, prefix)

    def _write_slowly(self, datum: Any, prefix: bytes) -> bytes:
        stream = io.BytesIO()
        stream.write(prefix)
        try:
            schemaless_writer(stream, self.schema.root, datum, **self._options)
        except Exception as error:
            raise SerializationError(self._explain(datum, error)) from error
        return stream.getvalue()

    def _explain(self, datum: Any, error: Exception) -> str:
        """Return which field does not fit the schema, and what to do."""
        try:
            validate(datum, self.schema.root, strict=self._options["strict"])
        except ValidationError as found:
            first = found.errors[0] if found.errors else None
            if first is not None and getattr(first, "field", None):
                wanted = first.schema if isinstance(first.schema, str | list) else first.schema.get("type")
                given = f"{first.datum!r:.80} ({type(first.datum).__name__})"
                return (
                    f"field {first.field} is {given}, and its type is {wanted}; change the value, or register a schema "
                    "with another type"
                )
        except Exception:  # the validator fails on the same values as the writer
            pass
        return f"{explain(error)}; change the value, or register another schema"


class AvroWriting:
    """The part of a serializer that knows Avro."""

    schema_type = AVRO
    fetch_format: str | None = None

    def __init__(self, schema: Schema | None, options: Mapping[str, Any]) -> None:
        self._schema = schema
        self._options = options
        self._name: str | None = None
        if schema is not None and not schema.references:
            self._name = parse_avro(schema).record_name
        elif schema is not None:
            self._name = record_name_of(schema)

    def record_name(self, obj: Any) -> str | None:
        return self._name

    def indexes(self, obj: Any) -> list[int] | None:
        return None

    def schema(self, obj: Any, calls: RegistryCalls, register: Register) -> Exchange[Schema | None]:
        yield from ()
        return self._schema

    def prepare(self, schema: Schema, obj: Any, calls: RegistryCalls) -> Exchange[Encoder]:
        references = yield from resolve_references(schema, calls)
        parsed = parse_avro(schema, references)
        return AvroEncoder(parsed, self._options["validate.strict"], self._options["validate.strict.allow.default"])


class AvroReading:
    """The part of a deserializer that knows Avro."""

    schema_type = AVRO
    reads_schemas = True

    def __init__(self, return_record_name: bool) -> None:
        self._return_record_name = return_record_name

    def prepare(
        self, writer: Schema | None, reader: Schema | None, indexes: list[int] | None, calls: RegistryCalls | None
    ) -> Exchange[Decoder]:
        assert writer is not None
        assert calls is not None
        written = parse_avro(writer, (yield from resolve_references(writer, calls)))
        wanted = None
        if reader is not None:
            wanted = parse_avro(reader, (yield from resolve_references(reader, calls)))
        return decoder_of(written, wanted, self._return_record_name)


UNBOUNDED = (
    "the schema has an array with items that take no bytes, of which a short value could claim any number; "
    "use another type of items, or a number instead of the array"
)


def decoder_of(writer: AvroSchema, reader: AvroSchema | None, return_record_name: bool) -> Decoder:
    """Return the decoder of payloads."""
    root, wanted = writer.root, None if reader is None else reader.root
    if writer.is_plain_bytes:
        return lambda data, start: data[start:]
    if has_unbounded_array(root, writer.named):
        raise SerializationError(UNBOUNDED)

    def decode(data: bytes, start: int) -> Any:
        stream = io.BytesIO(data)
        stream.seek(start)
        try:
            value = schemaless_reader(stream, root, wanted, return_record_name)
        except Exception as error:  # invalid bytes may raise anything in the reader
            text = f"{explain(error)}; the value was written with another schema, or the schemas do not match"
            raise SerializationError(text) from error
        if stream.tell() != len(data):
            left = len(data) - stream.tell()
            raise SerializationError(f"{left} of {len(data)} bytes are left over; it was written with another schema")
        return value

    return decode


class AvroSerializer(Serializer):
    """Serializes values to Avro, with the id of the schema in front.

    Values are dicts, or objects of dataclasses, pydantic models and msgspec structs. `conf` has Confluent's options:
    `auto.register.schemas`, `use.latest.version`, `subject.name.strategy` and the others of docs/schemas.md.
    """

    def __init__(
        self,
        schema_registry_client: SchemaRegistryClient,
        schema_str: str | Schema | None = None,
        to_dict: ToDict | None = None,
        conf: Mapping[str, Any] | None = None,
    ) -> None:
        options = checked_options(conf, OPTIONS)
        super().__init__(schema_registry_client, AvroWriting(avro_schema(schema_str), options), options, to_dict)


class AsyncAvroSerializer(AsyncSerializer):
    """The same as `AvroSerializer`, for asyncio."""

    def __init__(
        self,
        schema_registry_client: AsyncSchemaRegistryClient,
        schema_str: str | Schema | None = None,
        to_dict: ToDict | None = None,
        conf: Mapping[str, Any] | None = None,
    ) -> None:
        options = checked_options(conf, OPTIONS)
        super().__init__(schema_registry_client, AvroWriting(avro_schema(schema_str), options), options, to_dict)


class AvroDeserializer(Deserializer):
    """Deserializes Avro values to dicts, or to what `from_dict` or the class `into` makes of them.

    `schema_str` is the reader's schema: values of other versions are converted to it by Avro's rules.
    """

    def __init__(
        self,
        schema_registry_client: SchemaRegistryClient,
        schema_str: str | Schema | None = None,
        from_dict: FromDict | None = None,
        return_record_name: bool = False,
        conf: Mapping[str, Any] | None = None,
        *,
        into: type | None = None,
    ) -> None:
        options = checked_options(conf, DESERIALIZER_OPTIONS)
        super().__init__(
            schema_registry_client,
            AvroReading(return_record_name),
            avro_schema(schema_str),
            options,
            converter(from_dict, into),
        )


class AsyncAvroDeserializer(AsyncDeserializer):
    """The same as `AvroDeserializer`, for asyncio."""

    def __init__(
        self,
        schema_registry_client: AsyncSchemaRegistryClient,
        schema_str: str | Schema | None = None,
        from_dict: FromDict | None = None,
        return_record_name: bool = False,
        conf: Mapping[str, Any] | None = None,
        *,
        into: type | None = None,
    ) -> None:
        options = checked_options(conf, DESERIALIZER_OPTIONS)
        super().__init__(
            schema_registry_client,
            AvroReading(return_record_name),
            avro_schema(schema_str),
            options,
            converter(from_dict, into),
        )
