"""Serializers and deserializers for JSON with a JSON Schema, with Confluent's options."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from ottla.errors import SerializationError
from ottla.extras import extra
from ottla.schemas.calls import RegistryCalls
from ottla.schemas.clients import AsyncSchemaRegistryClient, SchemaRegistryClient
from ottla.schemas.context import SerializationContext
from ottla.schemas.exchange import Exchange
from ottla.schemas.objects import to_json_ready
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
    import jsonschema
    import referencing
    import referencing.jsonschema

JSON = "JSON"
OPTIONS = {**SERIALIZER_OPTIONS, "validate": True}
READER_OPTIONS = {**DESERIALIZER_OPTIONS, "validate": True}
MAX_SHOWN = 80
"""The number of characters of a wrong value in an error."""
ToDict = Callable[[Any, SerializationContext], Any]
FromDict = Callable[[Any, SerializationContext], Any]
Encode = Callable[[Any], bytes | str]
Decode = Callable[[Any], Any]


def json_schema(schema: str | Schema | None) -> Schema | None:
    """Return a schema given as text or as a `Schema`."""
    if schema is None or isinstance(schema, Schema):
        return schema
    if not isinstance(schema, str):
        raise TypeError(f"schema_str = {schema!r}: must be a JSON Schema as text, or a Schema")
    return Schema(schema, JSON)


def make_validator(schema: Schema, references: Sequence[tuple[str, Schema]]) -> Any:
    """Return a validator for the schema; it fetches nothing from other places. Raises SerializationError."""
    try:
        content = json.loads(schema.schema_str or "")
        draft7 = referencing.jsonschema.DRAFT7
        pairs = [
            (name, referencing.Resource.from_contents(json.loads(one.schema_str or ""), default_specification=draft7))
            for name, one in references
        ]
        kind: Any = jsonschema.validators.validator_for(content, default=jsonschema.Draft7Validator)
        kind.check_schema(content)
        return kind(content, registry=referencing.Registry().with_resources(pairs))
    except (ValueError, TypeError, AttributeError, jsonschema.SchemaError) as error:
        text = (schema.schema_str or "")[:200]
        raise SerializationError(f"{text!r} is not a JSON Schema: {str(error).splitlines()[0]}") from error


def check_valid(validator: Any, value: Any) -> None:
    """Raise SerializationError with the field that does not fit the schema."""
    try:
        found = jsonschema.exceptions.best_match(validator.iter_errors(value))
    except (referencing.exceptions.Unresolvable, RecursionError) as error:
        raise SerializationError(f"the JSON Schema cannot be evaluated: {error}; add a reference to it") from error
    if found is not None:
        message = found.message if len(found.message) < 4 * MAX_SHOWN else found.message[: 4 * MAX_SHOWN] + "…"
        raise SerializationError(f"field {found.json_path}: {message}; change the value, or register another schema")


def make_encoder(
    schema: Schema, references: Sequence[tuple[str, Schema]], validates: bool, encode_json: Encode
) -> Encoder:
    """Return the encoder of values, which are validated by the schema or not."""
    validator = make_validator(schema, references) if validates else None

    def encode(obj: Any, prefix: bytes) -> bytes:
        try:
            plain = to_json_ready(obj)
            data = encode_json(plain)
        except (TypeError, ValueError, msgspec.ValidationError) as error:
            raise SerializationError(f"it cannot be JSON: {error}; pass to_dict") from error
        if validator is not None:
            check_valid(validator, plain)
        return prefix + (data.encode() if isinstance(data, str) else data)

    return encode


class JSONWriting:
    """The part of a serializer that knows JSON Schema."""

    schema_type = JSON
    fetch_format: str | None = None

    def __init__(self, schema: Schema | None, options: Mapping[str, Any], encode: Encode | None) -> None:
        self._schema = schema
        self._validates = options["validate"]
        self._name = record_name_of(schema)
        self._encode = encode or msgspec.json.encode

    def record_name(self, obj: Any) -> str | None:
        return self._name

    def indexes(self, obj: Any) -> list[int] | None:
        return None

    def schema(self, obj: Any, calls: RegistryCalls, register: Register) -> Exchange[Schema | None]:
        yield from ()
        return self._schema

    def prepare(self, schema: Schema, obj: Any, calls: RegistryCalls) -> Exchange[Encoder]:
        references = yield from resolve_references(schema, calls)
        return make_encoder(schema, references, self._validates, self._encode)


class JSONReading:
    """The part of a deserializer that knows JSON Schema."""

    schema_type = JSON

    def __init__(self, reads_schemas: bool, options: Mapping[str, Any], decode: Decode | None) -> None:
        self.reads_schemas = reads_schemas
        self._validates = options["validate"]
        self._decode = decode or msgspec.json.decode

    def prepare(
        self, writer: Schema | None, reader: Schema | None, indexes: list[int] | None, calls: RegistryCalls | None
    ) -> Exchange[Decoder]:
        schema = reader or writer
        validator = None
        if self._validates and schema is not None:
            references = [] if calls is None else (yield from resolve_references(schema, calls))
            validator = make_validator(schema, references)
        decode_json = self._decode

        def decode(data: bytes, start: int) -> Any:
            try:
                value = decode_json(data[start:])
            except ValueError as error:
                raise SerializationError(f"it is not JSON: {error}; it was written by another serializer") from error
            if validator is not None:
                check_valid(validator, value)
            return value

        return decode


class JSONSerializer(Serializer):
    """Serializes values to JSON, validated by a JSON Schema, with the id of the schema in front.

    Values are dicts, or objects of dataclasses, pydantic models and msgspec structs.
    """

    def __init__(
        self,
        schema_str: str | Schema | None,
        schema_registry_client: SchemaRegistryClient,
        to_dict: ToDict | None = None,
        conf: Mapping[str, Any] | None = None,
        *,
        json_encode: Encode | None = None,
    ) -> None:
        options = checked_options(conf, OPTIONS)
        writing = JSONWriting(json_schema(schema_str), options, json_encode)
        super().__init__(schema_registry_client, writing, options, to_dict)


class AsyncJSONSerializer(AsyncSerializer):
    """The same as `JSONSerializer`, for asyncio."""

    def __init__(
        self,
        schema_str: str | Schema | None,
        schema_registry_client: AsyncSchemaRegistryClient,
        to_dict: ToDict | None = None,
        conf: Mapping[str, Any] | None = None,
        *,
        json_encode: Encode | None = None,
    ) -> None:
        options = checked_options(conf, OPTIONS)
        writing = JSONWriting(json_schema(schema_str), options, json_encode)
        super().__init__(schema_registry_client, writing, options, to_dict)


class JSONDeserializer(Deserializer):
    """Deserializes JSON values to dicts, or to what `from_dict` or the class `into` makes of them.

    Values are validated by `schema_str`, else by the schema of their id. Without a registry client they are validated
    by `schema_str` only.
    """

    def __init__(
        self,
        schema_str: str | Schema | None,
        from_dict: FromDict | None = None,
        schema_registry_client: SchemaRegistryClient | None = None,
        conf: Mapping[str, Any] | None = None,
        *,
        into: type | None = None,
        json_decode: Decode | None = None,
    ) -> None:
        options = checked_options(conf, READER_OPTIONS)
        reading = JSONReading(schema_registry_client is not None, options, json_decode)
        super().__init__(schema_registry_client, reading, json_schema(schema_str), options, converter(from_dict, into))


class AsyncJSONDeserializer(AsyncDeserializer):
    """The same as `JSONDeserializer`, for asyncio."""

    def __init__(
        self,
        schema_str: str | Schema | None,
        from_dict: FromDict | None = None,
        schema_registry_client: AsyncSchemaRegistryClient | None = None,
        conf: Mapping[str, Any] | None = None,
        *,
        into: type | None = None,
        json_decode: Decode | None = None,
    ) -> None:
        options = checked_options(conf, READER_OPTIONS)
        reading = JSONReading(schema_registry_client is not None, options, json_decode)
        super().__init__(schema_registry_client, reading, json_schema(schema_str), options, converter(from_dict, into))
