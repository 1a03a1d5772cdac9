"""The view of keys and values with a schema id: decoded as JSON, or the bytes with the reason why they cannot be decoded."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from ottla.console.record_view import MOST_BYTES, show_bytes
from ottla.errors import OttlaError, SerializationError
from ottla.schemas.clients import SchemaRegistryClient
from ottla.schemas.context import SerializationContext
from ottla.schemas.errors import SchemaRegistryError
from ottla.schemas.values import Schema
from ottla.schemas.wire import FoundId, find_header, has_schema_id, read_id

if TYPE_CHECKING:
    from ottla.client.consumer import ConsumerRecord

Read = Callable[[bytes, SerializationContext], Any]
View = dict[str, Any]


class RegisteredValues:
    """Decodes the keys and values of one search. Each schema is requested once, also if that fails."""

    def __init__(self, client: SchemaRegistryClient) -> None:
        self._client = client
        self._schemas: dict[object, tuple[str, Read] | OttlaError] = {}
        self._unreachable: SchemaRegistryError | None = None

    def show_field(self, record: ConsumerRecord, field: str) -> View:
        """Return the view of the `key` or `value` of a record."""
        data: bytes | None = record.key if field == "key" else record.value
        header = find_header(record.headers, field)
        if data is None or (header is None and not has_schema_id(data)):
            return show_bytes(data)
        number: object = None
        try:
            found = read_id(data if header is None else header, with_indexes=False)
            number = str(found.guid) if found.id is None else found.id
            form, read = self._find_reader(found)
            text = readable_json(read(data, SerializationContext(record.topic, field, record.headers)))
        except Exception as error:  # bytes of any writer may raise anything in a reader
            reason = str(error) or type(error).__name__
            return {**show_bytes(data), "schema": number, "why": f"not decoded: {reason}"}
        cut = len(text) > MOST_BYTES
        return {"form": form, "text": text[:MOST_BYTES], "bytes": len(data), "cut": cut, "schema": number}

    def _find_reader(self, found: FoundId) -> tuple[str, Read]:
        """Return the name of a schema's format, and the function that reads its values."""
        key: tuple[object, ...] = (found.id, found.guid)
        if self._unreachable is not None:
            raise self._unreachable
        if key not in self._schemas:
            try:
                self._schemas[key] = self._load_reader(found)
            except SchemaRegistryError as error:
                self._unreachable = error if error.http_status_code < 0 else None
                self._schemas[key] = error
            except OttlaError as error:
                self._schemas[key] = error
        reader = self._schemas[key]
        if isinstance(reader, OttlaError):
            raise reader
        return reader

    def _load_reader(self, found: FoundId) -> tuple[str, Read]:
        schema = self._fetch_schema(found, None)
        match schema.schema_type:
            case "AVRO":
                from ottla.schemas.avro import AvroDeserializer

                return "Avro", AvroDeserializer(self._client)
            case "JSON":
                from ottla.schemas.json_schema import JSONDeserializer

                return "JSON Schema", JSONDeserializer(None, schema_registry_client=self._client)
            case "PROTOBUF":
                from ottla.schemas.protobuf_messages import MessageReader

                return "Protobuf", MessageReader(self._client, self._fetch_schema(found, "serialized"))
        raise SerializationError(f"the type {schema.schema_type!r} of the schema is unknown; update Ottla")

    def _fetch_schema(self, found: FoundId, form: str | None) -> Schema:
        if found.id is not None:
            return self._client.get_schema(found.id, fmt=form)
        return self._client.get_schema_by_guid(str(found.guid), form)


def readable_json(value: Any) -> str:
    """Return a decoded value as indented JSON; bytes are base64, dates and times are in ISO 8601."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
