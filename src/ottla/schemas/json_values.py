"""Registered values as JSON text and back, for the command line: Avro, JSON Schema and Protobuf of any schema.

In JSON, bytes are base64, decimals are text, and dates and times are in ISO 8601.
"""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Callable, Mapping
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

import msgspec

from ottla.errors import SerializationError
from ottla.schemas.avro import AvroDeserializer, AvroSerializer
from ottla.schemas.avro_schema import AvroSchema, full_type, parse_avro
from ottla.schemas.clients import SchemaRegistryClient
from ottla.schemas.context import SerializationContext
from ottla.schemas.json_schema import JSONDeserializer, JSONSerializer
from ottla.schemas.serde import resolve_references
from ottla.schemas.subjects import topic_subject_name_strategy

LATEST: Mapping[str, Any] = {"use.latest.version": True}


class JsonReader:
    """Deserializes registered values to JSON text; for `value_deserializer`."""

    def __init__(self, form: str, client: SchemaRegistryClient) -> None:
        self._read: Any
        if form == "protobuf":
            from ottla.schemas.protobuf_messages import ProtobufValues

            self._read = ProtobufValues(client)
        elif form == "json":
            self._read = JSONDeserializer(None, schema_registry_client=client, conf={"validate": False})
        else:
            self._read = AvroDeserializer(client)

    def __call__(self, data: bytes) -> bytes:
        return self.deserialize_record(data, "", "value", ())

    def deserialize_record(self, data: bytes, topic: str, field: str, headers: Any) -> bytes:
        """Return the JSON text of a key or value; called by `ottla.Consumer`."""
        return msgspec.json.encode(self._read.deserialize_record(data, topic, field, headers))


class JsonWriter:
    """Serializes JSON text with the newest version of the topic's subject; for `value_serializer`."""

    def __init__(self, form: str, client: SchemaRegistryClient) -> None:
        self._client = client
        self._form = form
        self._write: Any = AvroSerializer(client, conf=LATEST)
        if form == "json":
            self._write = JSONSerializer(None, client, conf=LATEST)
        self._messages: dict[str, Any] = {}
        self._converts: dict[str, AvroSchema] = {}

    def __call__(self, text: bytes | None) -> bytes | None:
        raise SerializationError("this serializer needs the topic; use it as the serializer of a Producer")

    def serialize_record(self, text: bytes | None, topic: str, field: str, headers: Any) -> bytes | None:
        """Return the registered value for JSON text; called by `ottla.Producer`."""
        if text is None:
            return None
        try:
            value = json.loads(text)
        except ValueError as error:
            raise SerializationError(f"{text[:80]!r} is not JSON: {error}; write the {field} as JSON") from None
        context = SerializationContext(topic, field, headers)
        subject = str(topic_subject_name_strategy(context))
        if self._form == "protobuf":
            return self._write_message(subject, value, context)
        if self._form == "avro":
            if subject not in self._converts:
                self._converts[subject] = self._fetch(subject)
            schema = self._converts[subject]
            value = from_json(schema.root, schema.named, value)
        written: bytes | None = self._write(value, context)
        return written

    def _write_message(self, subject: str, value: Any, context: SerializationContext) -> bytes | None:
        from ottla.schemas.protobuf import ProtobufSerializer
        from ottla.schemas.protobuf_messages import latest_message_class

        if subject not in self._messages:
            kind = latest_message_class(self._client, subject)
            self._messages[subject] = ProtobufSerializer(kind, self._client, LATEST)
        if not isinstance(value, dict):
            raise SerializationError(f"the {context.field} is not a JSON object; write the fields of the message")
        written: bytes | None = self._messages[subject](value, context)
        return written

    def _fetch(self, subject: str) -> AvroSchema:
        latest = self._client.get_latest_version(subject).schema
        return parse_avro(latest, self._client.run(resolve_references(latest, self._client.calls)))


def from_text(convert: Callable[[str], Any]) -> Callable[[Any], Any]:
    """Return a conversion of text; values that are not text are numbers already."""
    return lambda value: convert(value) if isinstance(value, str) else value


LOGICAL: Mapping[str, Callable[[Any], Any]] = {
    "date": from_text(date.fromisoformat),
    "time-millis": from_text(time.fromisoformat),
    "time-micros": from_text(time.fromisoformat),
    "timestamp-millis": from_text(datetime.fromisoformat),
    "timestamp-micros": from_text(datetime.fromisoformat),
    "local-timestamp-millis": from_text(datetime.fromisoformat),
    "local-timestamp-micros": from_text(datetime.fromisoformat),
    "decimal": lambda value: Decimal(str(value)),
}


def from_json(schema: Any, named: Mapping[str, Any], value: Any) -> Any:
    """Return a JSON value with the Python types of its Avro type; what does not fit is unchanged, for the serializer's error."""
    full = full_type(schema, named)
    if isinstance(full, list):
        others = [branch for branch in full if full_type(branch, named)["type"] != "null"]
        return from_json(others[0], named, value) if value is not None and len(others) == 1 else value
    kind = full["type"]
    if kind in ("record", "error") and isinstance(value, dict):
        types = {field["name"]: field["type"] for field in full["fields"]}
        return {name: from_json(types[name], named, part) if name in types else part for name, part in value.items()}
    if kind == "array" and isinstance(value, list):
        return [from_json(full["items"], named, item) for item in value]
    if kind == "map" and isinstance(value, dict):
        return {name: from_json(full["values"], named, part) for name, part in value.items()}
    try:
        if full.get("logicalType") in LOGICAL:
            return LOGICAL[full["logicalType"]](value)
        if kind in ("bytes", "fixed") and isinstance(value, str):
            return b64decode(value, validate=True)
    except (ValueError, ArithmeticError):
        return value
    return float(value) if kind in ("float", "double") and type(value) is int else value
