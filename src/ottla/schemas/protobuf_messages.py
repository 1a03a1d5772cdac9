"""Reads and writes Protobuf values with the descriptors of a registry, without generated classes."""

from __future__ import annotations

import time
from typing import Any

from ottla.errors import SerializationError
from ottla.extras import extra
from ottla.schemas.caches import BoundedCache
from ottla.schemas.clients import SchemaRegistryClient
from ottla.schemas.context import SerializationContext
from ottla.schemas.protobuf import ProtobufDeserializer
from ottla.schemas.protobuf_schema import find_message, load_file
from ottla.schemas.serde import MAX_PREPARED
from ottla.schemas.values import Schema
from ottla.schemas.wire import FoundId, find_header, read_id

with extra("schemas"):
    from google.protobuf import json_format, message_factory


class MessageFile:
    """The messages of one schema."""

    def __init__(self, client: SchemaRegistryClient, schema: Schema) -> None:
        """Load the descriptor of a schema, and of what it references. Raise SerializationError."""
        self._file = client.run(load_file(schema, client.calls))
        self._classes: dict[tuple[int, ...], Any] = {}

    def message_class(self, indexes: tuple[int, ...]) -> Any:
        """Return the class of the message at a path in the file."""
        if indexes not in self._classes:
            self._classes[indexes] = message_factory.GetMessageClass(find_message(self._file, indexes))
        return self._classes[indexes]

    def to_dict(self, message: Any) -> Any:
        """Return a message as a dict for JSON, with the names of the schema."""
        return json_format.MessageToDict(message, preserving_proto_field_name=True, descriptor_pool=self._file.pool)


class MessageReader:
    """Reads the values of one schema as dicts."""

    def __init__(self, client: SchemaRegistryClient, schema: Schema) -> None:
        self._file = MessageFile(client, schema)
        self._readers: dict[tuple[int, ...], ProtobufDeserializer] = {}

    def __call__(self, data: bytes, context: SerializationContext) -> Any:
        header = find_header(context.headers, context.field)
        indexes = tuple(read_id(data if header is None else header, with_indexes=True).message_indexes or ())
        if indexes not in self._readers:
            self._readers[indexes] = ProtobufDeserializer(self._file.message_class(indexes))
        return self._file.to_dict(self._readers[indexes](data, context))


class ProtobufValues:
    """Reads Protobuf values of any schema as dicts. Each schema is requested once."""

    def __init__(self, client: SchemaRegistryClient) -> None:
        self._client = client
        self._readers: BoundedCache[MessageReader] = BoundedCache(MAX_PREPARED, None, time.monotonic)

    def deserialize_record(self, data: bytes | None, topic: str, field: str, headers: Any) -> Any:
        """Return the decoded key or value of a record."""
        if data is None:
            return None
        header = find_header(headers, field)
        found = read_id(data if header is None else header, with_indexes=False)
        key = (found.id, found.guid)
        reader = self._readers.get(key)
        if reader is None:
            reader = MessageReader(self._client, self._fetch(found))
            self._readers.put(key, reader)
        return reader(data, SerializationContext(topic, field, headers))

    def _fetch(self, found: FoundId) -> Schema:
        if found.id is not None:
            schema = self._client.get_schema(found.id, fmt="serialized")
        else:
            schema = self._client.get_schema_by_guid(str(found.guid), "serialized")
        if schema.schema_type != "PROTOBUF":
            raise SerializationError(
                f"schema {found.id or found.guid} is {schema.schema_type}, not PROTOBUF; read it as {schema.schema_type}"
            )
        return schema


def latest_message_class(client: SchemaRegistryClient, subject: str) -> Any:
    """Return the class of the first message in the newest version of a subject."""
    latest = client.get_latest_version(subject, fmt="serialized").schema
    if latest.schema_type != "PROTOBUF":
        raise SerializationError(f"the schema of subject {subject!r} is {latest.schema_type}, not PROTOBUF")
    return MessageFile(client, latest).message_class((0,))
