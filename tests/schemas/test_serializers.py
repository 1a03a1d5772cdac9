from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import msgspec
import pydantic
import pytest

import ottla.schemas as ours
from ottla.errors import ConfigError, SerializationError
from ottla.schemas import MessageField, Schema, SchemaReference, SchemaRegistryClient
from tests.schemas import confluent as theirs
from tests.schemas import messages
from tests.schemas.small_registry import SmallRegistry

ORDER = json.dumps(
    {
        "type": "record",
        "name": "Order",
        "namespace": "shop",
        "fields": [
            {"name": "id", "type": "long"},
            {"name": "name", "type": "string"},
            {
                "name": "price",
                "type": ["null", {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}],
            },
            {"name": "day", "type": {"type": "int", "logicalType": "date"}},
            {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
            {"name": "tags", "type": {"type": "array", "items": "string"}, "default": []},
        ],
    }
)
VALUE = {
    "id": 7,
    "name": "tea",
    "price": Decimal("1.50"),
    "day": date(2026, 11, 30),
    "at": datetime(2026, 11, 30, 12, tzinfo=UTC),
    "tags": ["a", "bb"],
}
JSON_SCHEMA = json.dumps(
    {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Order",
        "type": "object",
        "properties": {"id": {"type": "integer"}, "name": {"type": "string"}},
        "required": ["id"],
    }
)
JSON_VALUE = {"id": 7, "name": "tea"}


def context(topic: str = "orders", field: str = MessageField.VALUE, headers: Any = None) -> Any:
    return ours.SerializationContext(topic, field, headers)


def their_context_of(headers: Any) -> Any:
    return theirs.SerializationContext("orders", theirs.MessageField.VALUE, headers)


@pytest.fixture
def their_client(registry: SmallRegistry) -> Any:
    with theirs.SchemaRegistryClient({"url": registry.url}) as made:
        yield made


FORMATS: Any = {
    "avro": (
        lambda module, client, conf: module.AvroSerializer(client, ORDER, conf=conf),
        lambda module, client: module.AvroDeserializer(client),
        VALUE,
    ),
    "json": (
        lambda module, client, conf: module.JSONSerializer(JSON_SCHEMA, client, conf=conf),
        lambda module, client: module.JSONDeserializer(JSON_SCHEMA, schema_registry_client=client),
        JSON_VALUE,
    ),
    "protobuf": (
        lambda module, client, conf: module.ProtobufSerializer(messages.Order, client, conf),
        lambda module, client: module.ProtobufDeserializer(
            messages.Order, {"use.deprecated.format": False}, schema_registry_client=client
        ),
        messages.Order(id=7, place=messages.Place(street="x")),
    ),
}


@pytest.mark.parametrize("form", ["prefix", "header"])
@pytest.mark.parametrize("name", FORMATS)
def test_values_are_exchanged_with_confluents_serializers(
    name: str, form: str, client: SchemaRegistryClient, their_client: Any
) -> None:
    write, read, value = FORMATS[name]
    conf = [
        {"schema.id.serializer": one.header_schema_id_serializer} if form == "header" else {} for one in (ours, theirs)
    ]
    if name == "protobuf":
        conf = [{**one, "use.deprecated.format": False} for one in conf]
    our_headers: list[Any] = []
    their_headers: list[Any] = []
    our_context, their_context = (
        context(headers=our_headers),
        their_context_of(their_headers),
    )

    by_us = write(ours, client, conf[0])(value, our_context)
    by_them = write(theirs, their_client, conf[1])(value, their_context)

    if name != "json":  # their JSON has spaces
        assert by_us == by_them
    assert our_headers == their_headers
    assert bool(our_headers) == (form == "header")
    assert read(ours, client)(by_them, our_context) == value
    assert read(theirs, their_client)(by_us, their_context) == value


@pytest.mark.parametrize("kind", ["First", "Order", "Line"])
def test_message_indexes_are_confluents(kind: str, client: SchemaRegistryClient, their_client: Any) -> None:
    message_type = getattr(messages, kind)
    conf = {"use.deprecated.format": False}

    by_us = ours.ProtobufSerializer(message_type, client, conf)(message_type(), context())
    by_them = theirs.ProtobufSerializer(message_type, their_client, conf)(message_type(), their_context_of(None))

    assert by_us == by_them


def test_imported_protobuf_files_are_registered_as_references(
    client: SchemaRegistryClient, registry: SmallRegistry
) -> None:
    ours.ProtobufSerializer(messages.Order, client)({"id": 7, "place": {"street": "x"}}, context())

    assert set(registry.subjects) == {"place.proto", "orders-value"}
    assert client.get_latest_version("orders-value").schema.references == (
        SchemaReference("place.proto", "place.proto", 1),
    )


@dataclass
class DataOrder:
    id: int
    name: str
    price: Decimal | None
    day: date
    at: datetime
    tags: list[str]


class StructOrder(msgspec.Struct):
    id: int
    name: str
    price: Decimal | None
    day: date
    at: datetime
    tags: list[str]


class ModelOrder(pydantic.BaseModel):
    id: int
    name: str
    price: Decimal | None
    day: date
    at: datetime
    tags: list[str]


@pytest.mark.parametrize("kind", [DataOrder, StructOrder, ModelOrder])
def test_objects_are_written_as_their_dicts_and_read_back(kind: Any, client: SchemaRegistryClient) -> None:
    serialize = ours.AvroSerializer(client, ORDER)
    order = kind(**VALUE)

    data = serialize(order, context())

    assert data == serialize(VALUE, context())
    assert ours.AvroDeserializer(client, into=kind)(data, context()) == order


def test_objects_are_written_as_json(client: SchemaRegistryClient) -> None:
    @dataclass
    class Order:
        id: int
        name: str

    data = ours.JSONSerializer(JSON_SCHEMA, client)(Order(7, "tea"), context())

    assert ours.JSONDeserializer(None, schema_registry_client=client, into=Order)(data) == Order(7, "tea")


@pytest.mark.parametrize(
    ("conf", "field", "subject"),
    [
        ({}, "value", "orders-value"),
        ({}, "key", "orders-key"),
        ({"subject.name.strategy.type": "RECORD"}, "value", "shop.Order"),
        ({"subject.name.strategy": ours.topic_record_subject_name_strategy}, "value", "orders-shop.Order"),
        ({"subject.name.strategy": lambda ctx, name: f"{ctx.topic}.{name}.mine"}, "value", "orders.shop.Order.mine"),
    ],
)
def test_the_strategy_names_the_subject(
    conf: Any, field: str, subject: str, client: SchemaRegistryClient, registry: SmallRegistry
) -> None:
    serialize = ours.AvroSerializer(client, ORDER, conf=conf)

    for _ in range(2):
        serialize(VALUE, context(field=field))

    assert list(registry.subjects) == [subject]


def test_without_auto_registration_the_schema_must_be_there(client: SchemaRegistryClient) -> None:
    serialize = ours.AvroSerializer(client, ORDER, conf={"auto.register.schemas": False})
    with pytest.raises(ours.SchemaRegistryError, match="not found"):
        serialize(VALUE, context())

    client.register_schema("orders-value", Schema(ORDER))

    assert serialize(VALUE, context()) is not None


def test_the_latest_version_is_used_for_writing_and_reading(client: SchemaRegistryClient) -> None:
    older = '{"type": "record", "name": "A", "fields": [{"name": "x", "type": "int"}]}'
    newer = json.dumps(
        {
            "type": "record",
            "name": "A",
            "fields": [{"name": "x", "type": "long"}, {"name": "y", "type": "string", "default": "none"}],
        }
    )
    old = ours.AvroSerializer(client, older)({"x": 1}, context())
    client.register_schema("orders-value", Schema(newer))
    latest = {"use.latest.version": True}

    new = ours.AvroSerializer(client, None, conf=latest)({"x": 2, "y": "z"}, context())

    read = ours.AvroDeserializer(client, conf=latest)
    assert [read(data, context()) for data in (old, new)] == [{"x": 1, "y": "none"}, {"x": 2, "y": "z"}]


def test_references_are_fetched(client: SchemaRegistryClient) -> None:
    client.register_schema(
        "place",
        Schema('{"type": "record", "name": "Place", "namespace": "shop", "fields": [{"name": "x", "type": "int"}]}'),
    )
    user = Schema(
        '{"type": "record", "name": "User", "fields": [{"name": "a", "type": "shop.Place"}, {"name": "b", "type": "shop.Place"}]}',
        references=[SchemaReference("shop.Place", "place", 1)],
    )
    value = {"a": {"x": 1}, "b": {"x": 2}}

    data = ours.AvroSerializer(client, user)(value, context())

    assert ours.AvroDeserializer(client)(data, context()) == value


def test_json_references_are_fetched(client: SchemaRegistryClient) -> None:
    client.register_schema("place", Schema('{"type": "object", "required": ["x"]}', "JSON"))
    schema = Schema(
        '{"title": "U", "properties": {"a": {"$ref": "place.json"}}}',
        "JSON",
        [SchemaReference("place.json", "place", 1)],
    )
    serialize = ours.JSONSerializer(schema, client)
    serialize({"a": {"x": 1}}, context())

    with pytest.raises(SerializationError, match=r"schema 2 of subject 'orders-value': field \$.a: 'x' is a required"):
        serialize({"a": {}}, context())


def test_a_mismatch_names_subject_id_field_and_remedy(client: SchemaRegistryClient) -> None:
    serialize = ours.AvroSerializer(client, ORDER)

    with pytest.raises(SerializationError) as info:
        serialize({**VALUE, "name": 5}, context())

    assert str(info.value) == (
        "the value does not fit schema 1 of subject 'orders-value': field shop.Order.name is 5 (int), and its type is "
        "string; change the value, or register a schema with another type"
    )


def test_values_without_a_schema_id_are_explained(client: SchemaRegistryClient) -> None:
    read = ours.AvroDeserializer(client)

    with pytest.raises(SerializationError, match="it begins with byte 0x7b"):
        read(b'{"id": 7}', context())
    with pytest.raises(SerializationError, match="value of 0 bytes: it is empty"):
        read(b"", context())
    with pytest.raises(ours.SchemaRegistryError, match="404"):
        read(b"\0\0\0\0\7abc", context())


def test_broken_payloads_are_explained(client: SchemaRegistryClient) -> None:
    data = ours.AvroSerializer(client, ORDER)(VALUE, context())
    assert data is not None
    read = ours.AvroDeserializer(client)

    for broken in (data[:-3], data + b"x"):
        with pytest.raises(SerializationError, match="cannot be read with schema 1 of subject 'orders-value'"):
            read(broken, context())


def test_a_deserializer_names_the_type_of_a_foreign_schema(client: SchemaRegistryClient) -> None:
    data = ours.JSONSerializer(JSON_SCHEMA, client)(JSON_VALUE, context())

    with pytest.raises(SerializationError, match="schema 1 is JSON, not AVRO"):
        ours.AvroDeserializer(client)(data, context())


def test_rules_that_the_registry_adds_to_a_schema_are_not_ignored(
    client: SchemaRegistryClient, registry: SmallRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules = {"domainRules": [{"name": "encrypt", "type": "ENCRYPT"}]}
    monkeypatch.setattr(
        registry, "register", lambda subject, body: (200, {"id": 1, "schema": body["schema"], "ruleSet": rules})
    )

    with pytest.raises(SerializationError, match="has the rule 'encrypt'"):
        ours.AvroSerializer(client, ORDER)(VALUE, context())


def test_a_schema_with_rules_is_rejected(client: SchemaRegistryClient) -> None:
    rules = {"domainRules": [{"name": "encrypt", "type": "ENCRYPT"}]}
    client.register_schema("orders-value", Schema(ORDER, rule_set=rules))

    with pytest.raises(SerializationError, match="has the rule 'encrypt'"):
        ours.AvroSerializer(client, conf={"use.latest.version": True})(VALUE, context())


@pytest.mark.parametrize(
    ("conf", "message"),
    [
        ({"auto.register": True}, "unknown option 'auto.register'"),
        ({"use.latest.version": 1}, "use.latest.version = 1: must be a bool"),
        ({"use.latest.version": True, "auto.register.schemas": True}, "exclude each other"),
        ({"subject.name.strategy.type": "mine"}, "must be one of TOPIC, RECORD, TOPIC_RECORD"),
        ({"schema.id.serializer": 5}, "must be a function"),
    ],
)
def test_wrong_options_are_explained(conf: Any, message: str, client: SchemaRegistryClient) -> None:
    with pytest.raises(ConfigError, match=message):
        ours.AvroSerializer(client, ORDER, conf=conf)


def test_none_is_a_tombstone(client: SchemaRegistryClient) -> None:
    assert ours.AvroSerializer(client, ORDER)(None, context()) is None
    assert ours.AvroDeserializer(client)(None, context()) is None


@pytest.mark.parametrize("name", FORMATS)
def test_the_asyncio_forms_do_the_same(name: str, registry: SmallRegistry, client: SchemaRegistryClient) -> None:
    write, read, value = FORMATS[name]

    class Forms:
        """The asyncio classes under the names of the others."""

        AvroSerializer, AvroDeserializer = ours.AsyncAvroSerializer, ours.AsyncAvroDeserializer
        JSONSerializer, JSONDeserializer = ours.AsyncJSONSerializer, ours.AsyncJSONDeserializer
        ProtobufSerializer, ProtobufDeserializer = ours.AsyncProtobufSerializer, ours.AsyncProtobufDeserializer

    async def use() -> None:
        async with ours.AsyncSchemaRegistryClient({"url": registry.url}) as async_client:
            data = await write(Forms, async_client, {})(value, context())
            assert data == write(ours, client, {})(value, context())
            assert await read(Forms, async_client)(data, context()) == value

    asyncio.run(use())
