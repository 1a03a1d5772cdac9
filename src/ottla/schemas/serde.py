"""The parts that all serializers and deserializers share: options, subjects, ids and caches.

A format (`avro`, `json_schema`, `protobuf`) prepares an encoder for a schema. `SerializerCore` decides which schema that
is, with generators of `calls`; `Serializer` and `AsyncSerializer` run these and are otherwise the same.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeVar

from msgspec import Struct

from ottla.errors import ConfigError, SerializationError
from ottla.schemas.caches import BoundedCache
from ottla.schemas.calls import RegistryCalls
from ottla.schemas.clients import AsyncSchemaRegistryClient, SchemaRegistryClient
from ottla.schemas.context import MessageField, SerializationContext
from ottla.schemas.exchange import Exchange
from ottla.schemas.objects import from_plain
from ottla.schemas.subjects import FIXED, choose_strategy, required_subject, topic_subject_name_strategy
from ottla.schemas.values import RegisteredSchema, Schema
from ottla.schemas.wire import (
    ID_MAGIC,
    PREFIX_BYTES,
    FoundId,
    SchemaId,
    dual_schema_id_deserializer,
    find_header,
    prefix_schema_id_serializer,
    read_id,
)

T = TypeVar("T")
MAX_PREPARED = 1000
"""The number of schemas, and of pairs of topic and field, that a serializer keeps."""
MAX_REFERENCES = 1000
COMMON = {
    "subject.name.strategy": None,
    "subject.name.strategy.type": None,
    "subject.name.strategy.conf": None,
    "use.latest.version": False,
    "use.latest.with.metadata": None,
}
SERIALIZER_OPTIONS: Mapping[str, Any] = {
    **COMMON,
    "auto.register.schemas": True,
    "normalize.schemas": False,
    "use.schema.id": None,
    "schema.id.serializer": prefix_schema_id_serializer,
}
DESERIALIZER_OPTIONS: Mapping[str, Any] = {**COMMON, "schema.id.deserializer": dual_schema_id_deserializer}
KINDS: Mapping[str, type] = {
    "auto.register.schemas": bool,
    "normalize.schemas": bool,
    "use.latest.version": bool,
    "use.schema.id": int,
    "use.latest.with.metadata": dict,
}


class Encoder(Protocol):
    """Encodes values with one schema."""

    def __call__(self, obj: Any, prefix: bytes) -> bytes: ...


class WriterFormat(Protocol):
    """The part of a serializer that depends on the format."""

    schema_type: str
    fetch_format: str | None
    """The format in which the registry returns a schema, such as a descriptor; None for its text."""

    def record_name(self, obj: Any) -> str | None:
        """Return the full name of the record type."""
        ...

    def schema(self, obj: Any, calls: RegistryCalls, register: Register) -> Exchange[Schema | None]:
        """Return the schema that the user gave; `register` is for schemas that it references."""
        ...

    def prepare(self, schema: Schema, obj: Any, calls: RegistryCalls) -> Exchange[Encoder]: ...

    def indexes(self, obj: Any) -> list[int] | None:
        """Return the message indexes of Protobuf; None in other formats."""
        ...


Register = Callable[[str, Schema], Exchange[RegisteredSchema]]
Convert = Callable[[Any, Any], Any]
"""A function of (value, context): makes the user's object of a decoded value, or a dict of the user's object."""
Decoder = Callable[[bytes, int], Any]
"""Decodes the payload that begins at a position of a value."""


class ReaderFormat(Protocol):
    """The part of a deserializer that depends on the format."""

    schema_type: str
    reads_schemas: bool
    """False if the values can be read without the schema of their writer."""

    def prepare(
        self, writer: Schema | None, reader: Schema | None, indexes: list[int] | None, calls: RegistryCalls | None
    ) -> Exchange[Decoder]: ...


class Prepared(Struct, frozen=True):
    """A schema that values can be encoded with."""

    encode: Encoder
    schema_id: SchemaId
    prefix: bytes | None
    """The bytes in front of each value; None if another function writes the id."""
    subject: str | None
    expires: float


class Reading(Struct, frozen=True):
    """A schema that values can be decoded with."""

    decode: Decoder
    subject: str | None
    expires: float


def checked_options(conf: Mapping[str, Any] | None, defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options with defaults. Raises ConfigError for an unknown one or a wrong type."""
    given = dict(conf or {})
    unknown = sorted(set(given) - set(defaults))
    if unknown:
        raise ConfigError(f"unknown option {unknown[0]!r}; the options are {', '.join(sorted(defaults))}")
    options = {**defaults, **given}
    for name, value in options.items():
        kind = KINDS.get(name) or (bool if isinstance(defaults[name], bool) else None)
        if kind is not None and value is not None and not isinstance(value, kind):
            raise ConfigError(f"{name} = {value!r}: must be a {kind.__name__}")
        if callable(defaults[name]) and not callable(value):
            raise ConfigError(f"{name} = {value!r}: must be a function")
    chosen = [name for name in ("use.latest.version", "use.latest.with.metadata", "use.schema.id") if options.get(name)]
    if len(chosen) > 1:
        raise ConfigError(f"{chosen[0]} and {chosen[1]} exclude each other; remove one of them")
    if "auto.register.schemas" in given and given["auto.register.schemas"] and chosen:
        raise ConfigError(f"auto.register.schemas and {chosen[0]} exclude each other; remove one of them")
    if conf is not None and chosen == ["use.latest.version"] and "auto.register.schemas" in defaults:
        options["auto.register.schemas"] = False
    return options


def topic_and_field(ctx: SerializationContext | None) -> tuple[str | None, str]:
    return (None, MessageField.VALUE) if ctx is None else (ctx.topic, ctx.field)


def describe_schema(subject: str | None, schema_id: Any) -> str:
    """Return which schema an error is about."""
    number = schema_id.id if schema_id.id is not None else schema_id.guid
    return f"schema {number}" + (f" of subject {subject!r}" if subject else "")


def reject_rules(schema: Schema, subject: str | None) -> None:
    """Raise SerializationError for a schema whose rules have to run in the client, such as the encryption of fields."""
    for group in ("domainRules", "encodingRules", "migrationRules"):
        active = [rule for rule in (schema.rule_set or {}).get(group) or () if not rule.get("disabled")]
        if active:
            raise SerializationError(
                f"the schema of subject {subject!r} has the rule {active[0].get('name')!r} ({group}), which this client "
                "does not run; disable the rule, or use a client that runs it"
            )


def check_schema_type(schema: Schema, subject: str | None, wanted: str) -> None:
    """Raise SerializationError for a schema of another format."""
    if schema.schema_type != wanted:
        raise SerializationError(
            f"the schema of subject {subject!r} is {schema.schema_type}, not {wanted}; use another format or subject"
        )


def resolve_references(schema: Schema, calls: RegistryCalls) -> Exchange[list[tuple[str, Schema]]]:
    """Return the referenced schemas with the names of the references, each after those that it references itself."""
    found: list[tuple[str, Schema]] = []
    seen: set[tuple[Any, ...]] = set()
    waiting: list[tuple[Any, Schema | None]] = [(reference, None) for reference in reversed(schema.references)]
    while waiting:
        reference, loaded = waiting.pop()
        if loaded is not None:
            found.append((reference.name, loaded))
            continue
        place = (reference.subject, reference.version, reference.name)
        if place in seen:
            continue
        seen.add(place)
        if len(seen) > MAX_REFERENCES:
            raise SerializationError(f"a schema has more than {MAX_REFERENCES} references; it cannot be read")
        registered = yield from calls.version(reference.subject, reference.version, True, None)
        waiting.append((reference, registered.schema))
        waiting.extend((other, None) for other in reversed(registered.schema.references))
    return found


class SerializerCore:
    """Chooses and prepares the schema of a value."""

    def __init__(
        self, format: WriterFormat, calls: RegistryCalls, options: Mapping[str, Any], ttl: float | None
    ) -> None:
        self._format = format
        self._calls = calls
        self._options = options
        self._strategy = choose_strategy(options["subject.name.strategy"], options["subject.name.strategy.type"])
        self._by_topic: Any = {} if self._strategy in FIXED else None
        self._prepared: BoundedCache[Prepared] = BoundedCache(MAX_PREPARED, None, time.monotonic)
        self._write_id = options["schema.id.serializer"]
        self._metadata = options["use.latest.with.metadata"]
        uses_latest = options["use.latest.version"] or self._metadata
        self._ttl = ttl if uses_latest and ttl is not None else float("inf")

    def find(self, obj: Any, ctx: SerializationContext | None) -> Prepared | None:
        """Return the prepared schema of a value; None if it has to be prepared."""
        if self._by_topic is None:
            return None
        where = (None, "value") if ctx is None else (ctx.topic, ctx.field)
        found: Prepared | None = self._by_topic.get((where, self._format.record_name(obj)))
        if found is not None and found.expires != float("inf") and time.monotonic() >= found.expires:
            return None
        return found

    def prepare(self, obj: Any, ctx: SerializationContext | None) -> Exchange[Prepared]:
        """Register or look up the schema, and prepare it."""
        name = self._format.record_name(obj)
        subject = required_subject(self._strategy(ctx, name), ctx)
        key = (subject, name)
        found = self._prepared.get(key)
        if found is None or time.monotonic() >= found.expires:
            registered = yield from self._choose(subject, obj)
            schema = registered.schema
            check_schema_type(schema, subject, self._format.schema_type)
            reject_rules(schema, subject)
            encode = yield from self._format.prepare(schema, obj, self._calls)
            indexes = self._format.indexes(obj)
            schema_id = SchemaId(self._format.schema_type, registered.schema_id, registered.guid, indexes)
            in_front = self._write_id is prefix_schema_id_serializer
            prefix = schema_id.id_to_bytes() if in_front else None
            found = Prepared(encode, schema_id, prefix, subject, time.monotonic() + self._ttl)
            self._prepared.put(key, found)
        if self._by_topic is not None:
            if len(self._by_topic) >= MAX_PREPARED:
                self._by_topic = {}
            self._by_topic[topic_and_field(ctx), name] = found
        return found

    def _choose(self, subject: str, obj: Any) -> Exchange[RegisteredSchema]:
        """Return the schema to write with, as the options say."""
        options, calls, fetch_format = self._options, self._calls, self._format.fetch_format
        normalize = options["normalize.schemas"]
        if options["use.schema.id"] is not None:
            return (yield from calls.schema_by_id(options["use.schema.id"], subject, fetch_format, None))
        if self._metadata:
            return (yield from calls.latest_with_metadata(subject, self._metadata, True, fetch_format))
        if options["use.latest.version"]:
            return (yield from calls.latest(subject, fetch_format))
        register: Register = lambda name, schema: self._register(name, schema, normalize)  # noqa: E731
        given = yield from self._format.schema(obj, calls, register)
        if given is None:
            raise SerializationError(
                f"there is no schema for subject {subject!r}: pass schema_str, or set use.latest.version"
            )
        registered = yield from self._register(subject, given, normalize)
        reject_rules(registered.schema, subject)  # the registry may add rules to a schema
        if fetch_format is not None and registered.schema_id is not None:
            fetched = yield from calls.schema_by_id(registered.schema_id, subject, fetch_format, None)
            given = fetched.schema
        return RegisteredSchema(registered.subject, registered.version, registered.schema_id, registered.guid, given)

    def _register(self, subject: str, schema: Schema, normalize: bool) -> Exchange[RegisteredSchema]:
        if self._options["auto.register.schemas"]:
            found = yield from self._calls.register(subject, schema, normalize)
            if found.guid is None and self._write_id is not prefix_schema_id_serializer:
                return (yield from self._calls.lookup(subject, schema, normalize, None, False))
            return found
        return (yield from self._calls.lookup(subject, schema, normalize, None, False))

    def encode(self, prepared: Prepared, obj: Any, ctx: SerializationContext | None) -> bytes:
        """Return the value with its schema id."""
        try:
            if prepared.prefix is not None:
                return prepared.encode(obj, prepared.prefix)
            payload = prepared.encode(obj, b"")
        except SerializationError as error:
            where = describe_schema(prepared.subject, prepared.schema_id)
            raise SerializationError(f"the value does not fit {where}: {error}") from error.__cause__
        written: bytes = self._write_id(payload, ctx, prepared.schema_id)
        return written


class Serializer:
    """Serializes values with a registered schema; blocks when a schema is used for the first time."""

    def __init__(
        self,
        client: SchemaRegistryClient,
        format: WriterFormat,
        options: Mapping[str, Any],
        to_dict: Convert | None = None,
    ) -> None:
        if to_dict is not None and not callable(to_dict):
            raise TypeError(f"to_dict = {to_dict!r}: must be a function of (object, SerializationContext)")
        self._to_dict = to_dict
        if not isinstance(client, SchemaRegistryClient):
            raise TypeError(f"schema_registry_client = {client!r}: must be an ottla.schemas.SchemaRegistryClient")
        self._client = client
        self._core = SerializerCore(format, client.calls, options, client.cache_latest_ttl_s)

    def __call__(self, obj: Any, ctx: SerializationContext | None = None) -> bytes | None:
        """Return the value with its schema id; None for None. Raises SerializationError, SchemaRegistryError."""
        if obj is None:
            return None
        core = self._core
        prepared = core.find(obj, ctx)
        if prepared is None:
            prepared = self._client.run(core.prepare(obj, ctx))
        return core.encode(prepared, obj if self._to_dict is None else self._to_dict(obj, ctx), ctx)

    def serialize_record(self, obj: Any, topic: str, field: str, headers: Any) -> bytes | None:
        """Serialize the key or value of a record; called by `ottla.Producer`, which then sends `headers`."""
        return self(obj, SerializationContext(topic, field, headers))

    def close(self) -> None:
        """Do nothing: the registry client belongs to the caller. Exists because Confluent's serializers have it."""


class AsyncSerializer:
    """Serializes values with a registered schema in asyncio: `await serializer(obj, ctx)`."""

    def __init__(
        self,
        client: AsyncSchemaRegistryClient,
        format: WriterFormat,
        options: Mapping[str, Any],
        to_dict: Convert | None = None,
    ) -> None:
        if to_dict is not None and not callable(to_dict):
            raise TypeError(f"to_dict = {to_dict!r}: must be a function of (object, SerializationContext)")
        self._to_dict = to_dict
        if not isinstance(client, AsyncSchemaRegistryClient):
            raise TypeError(f"schema_registry_client = {client!r}: must be an ottla.schemas.AsyncSchemaRegistryClient")
        self._client = client
        self._core = SerializerCore(format, client.calls, options, client.cache_latest_ttl_s)

    async def __call__(self, obj: Any, ctx: SerializationContext | None = None) -> bytes | None:
        """Return the value with its schema id; None for None. Raises SerializationError, SchemaRegistryError."""
        if obj is None:
            return None
        core = self._core
        prepared = core.find(obj, ctx)
        if prepared is None:
            prepared = await self._client.run(core.prepare(obj, ctx))
        return core.encode(prepared, obj if self._to_dict is None else self._to_dict(obj, ctx), ctx)

    async def close(self) -> None:
        """Do nothing: the registry client belongs to the caller. Exists because Confluent's serializers have it."""


class DeserializerCore:
    """Finds the schema of a value's writer, and prepares how values of it are read."""

    def __init__(
        self,
        format: ReaderFormat,
        calls: RegistryCalls | None,
        reader: Schema | None,
        options: Mapping[str, Any],
        ttl: float | None,
    ) -> None:
        self._format = format
        self._calls = calls
        self._reader = reader
        self._latest = bool(options["use.latest.version"])
        self._metadata = options["use.latest.with.metadata"]
        self._strategy = choose_strategy(options["subject.name.strategy"], options["subject.name.strategy.type"])
        self._read_id = options["schema.id.deserializer"]
        self._with_indexes = format.schema_type == "PROTOBUF"
        self._readings: BoundedCache[Reading] = BoundedCache(MAX_PREPARED, None, time.monotonic)
        self._ttl = ttl if (self._latest or self._metadata) and ttl is not None else float("inf")

    def locate(self, data: bytes, ctx: SerializationContext | None) -> tuple[FoundId, int]:
        """Return the schema id of a value, and where its payload begins."""
        if self._read_id is not dual_schema_id_deserializer:
            schema_id = SchemaId(self._format.schema_type)
            rest = self._read_id(data, ctx, schema_id)
            start = len(data) - (len(rest.getvalue()) - rest.tell())
            return FoundId(schema_id.id, schema_id.guid, schema_id.message_indexes, start), start
        header = None if ctx is None or not ctx.headers else find_header(ctx.headers, ctx.field)
        if header is not None:
            return read_id(header, self._with_indexes), 0
        if not self._with_indexes and len(data) >= PREFIX_BYTES and data[0] == ID_MAGIC:
            return FoundId(int.from_bytes(data[1:PREFIX_BYTES], "big"), None, None, PREFIX_BYTES), PREFIX_BYTES
        found = read_id(data, self._with_indexes)
        return found, found.size

    def find(self, found: FoundId, ctx: SerializationContext | None) -> Reading | None:
        """Return how values of a schema are read; None if that has to be prepared."""
        reading = self._readings.get(self._key(found, ctx))
        if reading is not None and time.monotonic() >= reading.expires:
            return None
        return reading

    def _key(self, found: FoundId, ctx: SerializationContext | None) -> Any:
        indexes = None if found.message_indexes is None else tuple(found.message_indexes)
        where = topic_and_field(ctx) if self._latest or self._metadata else None
        return found.id, found.guid, indexes, where

    def prepare(self, found: FoundId, ctx: SerializationContext | None) -> Exchange[Reading]:
        """Fetch the schemas of writer and reader, and prepare them."""
        subject = None
        if self._strategy is topic_subject_name_strategy and ctx is not None and ctx.topic is not None:
            subject = self._strategy(ctx, None)
        writer = None
        if self._format.reads_schemas:
            writer = yield from self._fetch_writer(found)
            reject_rules(writer, subject)
        reader = self._reader
        if self._latest or self._metadata:
            reader = yield from self._fetch_latest(ctx, writer)
        decode = yield from self._format.prepare(writer, reader, found.message_indexes, self._calls)
        reading = Reading(decode, subject, time.monotonic() + self._ttl)
        self._readings.put(self._key(found, ctx), reading)
        return reading

    def _fetch_writer(self, found: FoundId) -> Exchange[Schema]:
        calls = self._calls
        if calls is None:
            raise ConfigError("this deserializer needs a schema_registry_client to look up schema ids")
        fmt = "serialized" if self._format.schema_type == "PROTOBUF" else None
        if found.id is not None:
            registered = yield from calls.schema_by_id(found.id, None, fmt, None)
        else:
            registered = yield from calls.schema_by_guid(str(found.guid), fmt)
        kind = registered.schema.schema_type
        if kind != self._format.schema_type:
            raise SerializationError(
                f"schema {found.id or found.guid} is {kind}, not {self._format.schema_type}; use the deserializer for {kind}"
            )
        return registered.schema

    def _fetch_latest(self, ctx: SerializationContext | None, writer: Schema | None) -> Exchange[Schema]:
        assert self._calls is not None
        subject = required_subject(self._strategy(ctx, record_name_of(writer)), ctx)
        if self._metadata:
            registered = yield from self._calls.latest_with_metadata(subject, self._metadata, True, None)
        else:
            registered = yield from self._calls.latest(subject, None)
        return registered.schema

    def decode(self, reading: Reading, data: bytes, start: int, found: FoundId) -> Any:
        """Return the decoded value."""
        try:
            return reading.decode(data, start)
        except SerializationError as error:
            where = describe_schema(reading.subject, found)
            raise SerializationError(f"the value cannot be read with {where}: {error}") from error.__cause__


def converter(from_dict: Any, into: Any) -> Convert | None:
    """Return how decoded values become the user's objects: by a function of (dict, context), or as a class."""
    if from_dict is not None and into is not None:
        raise TypeError("from_dict and into exclude each other; pass one of them")
    if from_dict is not None:
        if not callable(from_dict):
            raise TypeError(f"from_dict = {from_dict!r}: must be a function of (dict, SerializationContext)")
        made: Convert = from_dict
        return made
    return None if into is None else lambda value, _: from_plain(value, into)


def record_name_of(schema: Schema | None) -> str | None:
    """Return the full name of an Avro record, or the title of a JSON Schema."""
    if schema is None or schema.schema_str is None or schema.schema_type not in ("AVRO", "JSON"):
        return None
    try:
        content = json.loads(schema.schema_str)
    except ValueError:
        return None
    if not isinstance(content, dict):
        return None
    if schema.schema_type == "JSON":
        title = content.get("title")
        return title if isinstance(title, str) else None
    name, space = content.get("name"), content.get("namespace")
    return f"{space}.{name}" if name and space and "." not in name else name


class Deserializer:
    """Deserializes values by the schema id that accompanies them; blocks when a schema is used for the first time."""

    def __init__(
        self,
        client: SchemaRegistryClient | None,
        format: ReaderFormat,
        reader: Schema | None,
        options: Mapping[str, Any],
        convert: Convert | None = None,
    ) -> None:
        self._convert = convert
        if client is not None and not isinstance(client, SchemaRegistryClient):
            raise TypeError(f"schema_registry_client = {client!r}: must be an ottla.schemas.SchemaRegistryClient")
        self._client = client
        ttl = None if client is None else client.cache_latest_ttl_s
        self._core = DeserializerCore(format, None if client is None else client.calls, reader, options, ttl)

    def __call__(self, data: bytes | None, ctx: SerializationContext | None = None) -> Any:
        """Return the decoded value; None for None. Raises SerializationError, SchemaRegistryError."""
        if data is None:
            return None
        core = self._core
        found, start = core.locate(data, ctx)
        reading = core.find(found, ctx)
        if reading is None:
            exchange = core.prepare(found, ctx)
            reading = run_without_registry(exchange) if self._client is None else self._client.run(exchange)
        value = core.decode(reading, data, start, found)
        return value if self._convert is None else self._convert(value, ctx)

    def deserialize_record(self, data: bytes, topic: str, field: str, headers: Any) -> Any:
        """Deserialize the key or value of a record; called by `ottla.Consumer`."""
        return self(data, SerializationContext(topic, field, headers))

    def close(self) -> None:
        """Do nothing: the registry client belongs to the caller. Exists because Confluent's deserializers have it."""


def run_without_registry(exchange: Exchange[T]) -> T:
    """Run a preparation that needs no registry."""
    try:
        next(exchange)
    except StopIteration as done:
        result: T = done.value
        return result
    raise ConfigError("this deserializer needs a schema_registry_client to look up schema ids")


class AsyncDeserializer:
    """Deserializes values by the schema id that accompanies them, in asyncio: `await deserializer(data, ctx)`."""

    def __init__(
        self,
        client: AsyncSchemaRegistryClient | None,
        format: ReaderFormat,
        reader: Schema | None,
        options: Mapping[str, Any],
        convert: Convert | None = None,
    ) -> None:
        self._convert = convert
        if client is not None and not isinstance(client, AsyncSchemaRegistryClient):
            raise TypeError(f"schema_registry_client = {client!r}: must be an ottla.schemas.AsyncSchemaRegistryClient")
        self._client = client
        ttl = None if client is None else client.cache_latest_ttl_s
        self._core = DeserializerCore(format, None if client is None else client.calls, reader, options, ttl)

    async def __call__(self, data: bytes | None, ctx: SerializationContext | None = None) -> Any:
        """Return the decoded value; None for None. Raises SerializationError, SchemaRegistryError."""
        if data is None:
            return None
        core = self._core
        found, start = core.locate(data, ctx)
        reading = core.find(found, ctx)
        if reading is None:
            exchange = core.prepare(found, ctx)
            reading = run_without_registry(exchange) if self._client is None else await self._client.run(exchange)
        value = core.decode(reading, data, start, found)
        return value if self._convert is None else self._convert(value, ctx)

    async def close(self) -> None:
        """Do nothing: the registry client belongs to the caller. Exists because Confluent's deserializers have it."""
