"""Serializers and deserializers for generated Protobuf classes, with Confluent's options.

The schema is the descriptor of the message's file in base64, as Confluent's serializer registers it. Imported files are
registered first, each under a subject of its own, except those that come with Protobuf.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from typing import Any

from ottla.errors import ConfigError, SerializationError
from ottla.extras import extra
from ottla.schemas.calls import RegistryCalls
from ottla.schemas.clients import AsyncSchemaRegistryClient, SchemaRegistryClient
from ottla.schemas.exchange import Exchange
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
)
from ottla.schemas.subjects import reference_subject_name_strategy
from ottla.schemas.values import Schema, SchemaReference

with extra("schemas"):
    from google.protobuf import json_format
    from google.protobuf.message import DecodeError, EncodeError, Message

PROTOBUF = "PROTOBUF"
OPTIONS = {
    **SERIALIZER_OPTIONS,
    "skip.known.types": True,
    "reference.subject.name.strategy": reference_subject_name_strategy,
    "use.deprecated.format": False,
}
READER_OPTIONS = {**DESERIALIZER_OPTIONS, "use.deprecated.format": False}
KNOWN = ("google/protobuf/", "google/type/", "confluent/")
"""The folders of files that every registry has."""


def checked_message_type(message_type: Any) -> Any:
    """Return a generated class."""
    if not (isinstance(message_type, type) and issubclass(message_type, Message)):
        raise TypeError(f"{message_type!r} is not a generated Protobuf class; pass the class of the message")
    return message_type


def reject_deprecated_format(options: Mapping[str, Any]) -> None:
    """Raise ConfigError for the wire format of Confluent's clients before 1.8."""
    if options["use.deprecated.format"]:
        raise ConfigError("use.deprecated.format = True: that format of old clients is not supported; set it to False")


def message_indexes(descriptor: Any) -> list[int]:
    """Return the path of a message in its file: the index of each enclosing message, and its own."""
    indexes: list[int] = []
    while descriptor is not None:
        siblings = descriptor.containing_type or descriptor.file
        found = siblings.nested_types if descriptor.containing_type else list(siblings.message_types_by_name.values())
        indexes.insert(0, [one.full_name for one in found].index(descriptor.full_name))
        descriptor = descriptor.containing_type
    return indexes


def file_text(descriptor: Any) -> str:
    """Return the descriptor of a file as base64."""
    return b64encode(descriptor.serialized_pb).decode("ascii")


class ProtobufWriting:
    """The part of a serializer that knows Protobuf."""

    schema_type = PROTOBUF
    fetch_format: str | None = None

    def __init__(self, message_type: Any, options: Mapping[str, Any]) -> None:
        reject_deprecated_format(options)
        self._type = checked_message_type(message_type)
        self._descriptor = self._type.DESCRIPTOR
        self._indexes = message_indexes(self._descriptor)
        self._skips_known = options["skip.known.types"]
        self._reference_subject = options["reference.subject.name.strategy"]

    def record_name(self, obj: Any) -> str | None:
        name: str = self._descriptor.full_name
        return name

    def indexes(self, obj: Any) -> list[int] | None:
        return self._indexes

    def schema(self, obj: Any, calls: RegistryCalls, register: Register) -> Exchange[Schema | None]:
        file = self._descriptor.file
        return Schema(file_text(file), PROTOBUF, (yield from self._register_imports(file, calls, register)))

    def _register_imports(self, file: Any, calls: RegistryCalls, register: Register) -> Exchange[list[SchemaReference]]:
        """Register the files that a file imports, those that they import before them."""
        references = []
        for imported in file.dependencies:
            if self._skips_known and imported.name.startswith(KNOWN):
                continue
            theirs = yield from self._register_imports(imported, calls, register)
            subject = self._reference_subject(None, SchemaReference(imported.name, None, None))
            schema = Schema(file_text(imported), PROTOBUF, theirs)
            found = yield from register(subject, schema)
            version = found.version
            if version is None:
                version = (yield from calls.lookup(subject, schema, False, None, False)).version
            references.append(SchemaReference(imported.name, subject, version))
        return references

    def prepare(self, schema: Schema, obj: Any, calls: RegistryCalls) -> Exchange[Encoder]:
        yield from ()
        kind = self._type

        def encode(obj: Any, prefix: bytes) -> bytes:
            message = obj
            try:
                if isinstance(obj, dict):
                    message = json_format.ParseDict(obj, kind())
                if not isinstance(message, kind):
                    raise SerializationError(
                        f"it is {type(obj).__name__}, not {kind.DESCRIPTOR.full_name}; pass a message of that class"
                    )
                return prefix + bytes(message.SerializeToString())
            except (json_format.ParseError, EncodeError, ValueError, TypeError) as error:
                raise SerializationError(f"{error}; change the value") from error

        return encode


class ProtobufReading:
    """The part of a deserializer that knows Protobuf."""

    schema_type = PROTOBUF
    reads_schemas = False

    def __init__(self, message_type: Any, options: Mapping[str, Any]) -> None:
        reject_deprecated_format(options)
        self._type = checked_message_type(message_type)

    def prepare(
        self, writer: Schema | None, reader: Schema | None, indexes: list[int] | None, calls: RegistryCalls | None
    ) -> Exchange[Decoder]:
        yield from ()
        kind = self._type

        def decode(data: bytes, start: int) -> Any:
            message = kind()
            try:
                message.ParseFromString(data[start:])
            except DecodeError as error:
                name = kind.DESCRIPTOR.full_name
                raise SerializationError(
                    f"it is not a {name} ({error}); read it with the class of its writer"
                ) from error
            return message

        return decode


class ProtobufSerializer(Serializer):
    """Serializes messages of a generated class, or dicts of their fields, with the schema id and message indexes in front."""

    def __init__(
        self,
        msg_type: Any,
        schema_registry_client: SchemaRegistryClient,
        conf: Mapping[str, Any] | None = None,
    ) -> None:
        options = checked_options(conf, OPTIONS)
        super().__init__(schema_registry_client, ProtobufWriting(msg_type, options), options)


class AsyncProtobufSerializer(AsyncSerializer):
    """The same as `ProtobufSerializer`, for asyncio."""

    def __init__(
        self,
        msg_type: Any,
        schema_registry_client: AsyncSchemaRegistryClient,
        conf: Mapping[str, Any] | None = None,
    ) -> None:
        options = checked_options(conf, OPTIONS)
        super().__init__(schema_registry_client, ProtobufWriting(msg_type, options), options)


class ProtobufDeserializer(Deserializer):
    """Deserializes values to messages of a generated class. It needs no registry."""

    def __init__(
        self,
        message_type: Any,
        conf: Mapping[str, Any] | None = None,
        schema_registry_client: SchemaRegistryClient | None = None,
    ) -> None:
        options = checked_options(conf, READER_OPTIONS)
        super().__init__(schema_registry_client, ProtobufReading(message_type, options), None, options)


class AsyncProtobufDeserializer(AsyncDeserializer):
    """The same as `ProtobufDeserializer`, for asyncio."""

    def __init__(
        self,
        message_type: Any,
        conf: Mapping[str, Any] | None = None,
        schema_registry_client: AsyncSchemaRegistryClient | None = None,
    ) -> None:
        options = checked_options(conf, READER_OPTIONS)
        super().__init__(schema_registry_client, ProtobufReading(message_type, options), None, options)
