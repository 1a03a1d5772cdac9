"""Producers and consumers with serializers, and Arrow tables of registered values."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

import ottla
import ottla.schemas as schemas
from ottla import Consumer, Producer
from ottla.errors import SerializationError
from ottla.schemas import Schema, SchemaRegistryClient
from tests.registry.running import running_registry
from tests.schemas import messages
from tests.schemas.small_registry import SmallRegistry

ORDER = json.dumps(
    {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}, {"name": "item", "type": "string"}]}
)
NEWER = json.dumps(
    {
        "type": "record",
        "name": "Order",
        "fields": [
            {"name": "id", "type": "long"},
            {"name": "item", "type": ["null", "string"]},
            {"name": "price", "type": "double", "default": 0.5},
        ],
    }
)
ROWS: list[Any] = [{"id": number, "item": "tea"} for number in range(3)]


@pytest.fixture
def consumer(servers: str) -> Iterator[Consumer[Any, Any]]:
    with Consumer(bootstrap_servers=servers, auto_offset_reset="earliest", enable_auto_commit=False) as made:
        yield made


def read_from(consumer: Consumer[Any, Any], topic: str) -> None:
    consumer.assign([ottla.TopicPartition(topic, 0)])


def poll_rows(consumer: Consumer[Any, Any], count: int, **arguments: Any) -> list[Any]:
    rows: list[Any] = []
    while len(rows) < count:
        rows += consumer.poll_arrow(10, **arguments).column("value").to_pylist()
    return rows


def send(servers: str, topic: str, serializer: Any, rows: list[Any], **keywords: Any) -> None:
    with Producer(bootstrap_servers=servers, value_serializer=serializer) as producer:
        for row in rows:
            producer.send(topic, row, **keywords)


@pytest.mark.parametrize("writes_headers", [False, True])
def test_serializers_work_as_those_of_producer_and_consumer(
    servers: str, topic: str, client: SchemaRegistryClient, registry: SmallRegistry, writes_headers: bool
) -> None:
    conf = {"schema.id.serializer": schemas.header_schema_id_serializer} if writes_headers else {}
    serialize = schemas.AvroSerializer(client, ORDER, conf=conf)
    with Producer(
        bootstrap_servers=servers, value_serializer=serialize, key_serializer=schemas.AvroSerializer(client, '"long"')
    ) as producer:
        for row in ROWS:
            producer.send(topic, row, key=row["id"], headers=[("kind", b"test")])

    deserialize = schemas.AvroDeserializer(client)
    with Consumer(
        bootstrap_servers=servers,
        auto_offset_reset="earliest",
        key_deserializer=deserialize,
        value_deserializer=deserialize,
    ) as consumer:
        read_from(consumer, topic)
        found: list[Any] = []
        while len(found) < 3:
            found += consumer.poll(10)

    assert [(record.key, record.value) for record in found] == [(row["id"], row) for row in ROWS]
    assert found[0].headers[0] == ("kind", b"test")
    assert len(found[0].headers) == 1 + writes_headers
    assert set(registry.subjects) == {f"{topic}-value", f"{topic}-key"}


def test_send_many_uses_the_serializer(servers: str, topic: str, client: SchemaRegistryClient) -> None:
    with Producer(bootstrap_servers=servers, value_serializer=schemas.AvroSerializer(client, ORDER)) as producer:
        producer.send_many(topic, ROWS).result(10)

    table = ottla.read_table(topic, bootstrap_servers=servers)

    read = schemas.AvroDeserializer(client)
    assert [read(data) for data in table.column("value").to_pylist()] == ROWS


def test_the_asyncio_clients_use_them_too(servers: str, topic: str, client: SchemaRegistryClient) -> None:
    from ottla import aio

    async def use() -> list[Any]:
        async with aio.Producer(
            bootstrap_servers=servers, value_serializer=schemas.AvroSerializer(client, ORDER)
        ) as producer:
            for row in ROWS:
                await producer.send(topic, row)
        async with aio.Consumer(
            bootstrap_servers=servers, auto_offset_reset="earliest", value_deserializer=schemas.AvroDeserializer(client)
        ) as consumer:
            consumer.assign([ottla.TopicPartition(topic, 0)])
            found: list[Any] = []
            while len(found) < 3:
                found += [record.value for record in await consumer.poll(10)]
            return found

    assert asyncio.run(use()) == ROWS


def test_a_value_that_does_not_fit_is_explained_by_send(servers: str, topic: str, client: SchemaRegistryClient) -> None:
    with (
        Producer(bootstrap_servers=servers, value_serializer=schemas.AvroSerializer(client, ORDER)) as producer,
        pytest.raises(
            SerializationError, match=rf"value.serializer failed.*subject '{topic}-value': field Order.id is 'x'"
        ),
    ):
        producer.send(topic, {"id": "x", "item": "tea"})


def test_polled_values_are_columns_of_the_newest_version(
    servers: str, topic: str, client: SchemaRegistryClient, consumer: Consumer[Any, Any]
) -> None:
    send(servers, topic, schemas.AvroSerializer(client, ORDER), ROWS)
    send(servers, topic, schemas.AvroSerializer(client, NEWER), [{"id": 9, "item": None, "price": 2.0}, None])
    read_from(consumer, topic)

    rows = poll_rows(consumer, 5, value_format="avro", registry=client)

    older = [{**row, "price": 0.5} for row in ROWS]
    assert rows == [*older, {"id": 9, "item": None, "price": 2.0}, None]


@pytest.mark.parametrize("chosen", [1, ORDER, Schema(ORDER)])
def test_a_version_or_schema_may_be_named(
    servers: str, topic: str, client: SchemaRegistryClient, consumer: Consumer[Any, Any], chosen: Any
) -> None:
    send(servers, topic, schemas.AvroSerializer(client, ORDER), ROWS)
    send(servers, topic, schemas.AvroSerializer(client, NEWER), [{"id": 9, "item": "x", "price": 2.0}])
    read_from(consumer, topic)

    rows = poll_rows(consumer, 4, value_format="avro", registry=client, value_schema=chosen, columns=["value"])

    assert rows == [*ROWS, {"id": 9, "item": "x"}]


def test_the_registry_may_be_an_address(
    servers: str, topic: str, client: SchemaRegistryClient, registry: SmallRegistry, consumer: Consumer[Any, Any]
) -> None:
    send(servers, topic, schemas.AvroSerializer(client, ORDER), ROWS)
    read_from(consumer, topic)
    assert poll_rows(consumer, 3, value_format="avro", registry=registry.url) == ROWS

    table = consumer.poll_arrow(0, value_format="avro", registry=registry.url)
    assert table.num_rows == 0
    assert str(table.schema.field("value").type) == "struct<id: int64, item: string>"


def test_keys_are_decoded_too(
    servers: str, topic: str, client: SchemaRegistryClient, consumer: Consumer[Any, Any]
) -> None:
    with Producer(bootstrap_servers=servers, key_serializer=schemas.AvroSerializer(client, '"long"')) as producer:
        producer.send(topic, b"plain", key=7)
    read_from(consumer, topic)

    table = consumer.poll_arrow(10, key_format="avro", registry=client)

    assert table.select(["key", "value"]).to_pylist() == [{"key": 7, "value": b"plain"}]


def test_record_subjects_are_read_by_the_newest_schema_among_the_values(
    servers: str, topic: str, client: SchemaRegistryClient, consumer: Consumer[Any, Any]
) -> None:
    by_record = {"subject.name.strategy.type": "RECORD"}
    send(servers, topic, schemas.AvroSerializer(client, ORDER, conf=by_record), ROWS)
    read_from(consumer, topic)

    assert poll_rows(consumer, 3, value_format="avro", registry=client) == ROWS


JSON_ORDER = json.dumps({"type": "object", "title": "Order", "properties": {"id": {"type": "integer"}}})
NEWER_JSON_ORDER = json.dumps(
    {"type": "object", "title": "Order", "properties": {"id": {"type": "integer"}, "item": {"type": "string"}}}
)


@pytest.mark.parametrize("conf", [{}, {"schema.id.serializer": schemas.header_schema_id_serializer}])
def test_json_is_read_as_the_newest_version_has_it(
    servers: str, topic: str, client: SchemaRegistryClient, consumer: Consumer[Any, Any], conf: Any
) -> None:
    send(servers, topic, schemas.JSONSerializer(JSON_ORDER, client, conf=conf), [{"id": 1, "item": "tea"}])
    send(servers, topic, schemas.JSONSerializer(NEWER_JSON_ORDER, client, conf=conf), [{"id": 2}, None])
    read_from(consumer, topic)

    assert poll_rows(consumer, 3, value_format="json", registry=client) == [
        {"id": 1, "item": "tea"},
        {"id": 2, "item": None},
        None,
    ]
    read_from(consumer, topic)
    consumer.seek_to_beginning()
    assert poll_rows(consumer, 3, value_format="json", registry=client, value_schema=1) == [{"id": 1}, {"id": 2}, None]


@pytest.mark.parametrize("conf", [{}, {"schema.id.serializer": schemas.header_schema_id_serializer}])
def test_protobuf_is_read_as_the_message_of_its_index(
    servers: str, topic: str, client: SchemaRegistryClient, consumer: Consumer[Any, Any], conf: Any
) -> None:
    send(servers, topic, schemas.ProtobufSerializer(messages.Order, client, conf=conf), [
        messages.Order(id=7, place=messages.Place(street="Elm")), None,
    ])  # fmt: skip
    read_from(consumer, topic)

    assert poll_rows(consumer, 2, value_format="protobuf", registry=client) == [
        {"id": 7, "place": {"street": "Elm"}},
        None,
    ]
    assert consumer.poll_arrow(0, value_format="protobuf", registry=client).schema.field("value").type.num_fields == 2


def test_a_value_of_another_message_is_named(
    servers: str, topic: str, client: SchemaRegistryClient, consumer: Consumer[Any, Any]
) -> None:
    send(servers, topic, schemas.ProtobufSerializer(messages.First, client), [messages.First(id=1)])
    send(servers, topic, schemas.ProtobufSerializer(messages.Line, client), [messages.Line(item="tea")])
    read_from(consumer, topic)

    with pytest.raises(
        SerializationError, match=r"offset 1 .* it is a message shop.Order.Line, and the column has shop.First"
    ):
        poll_rows(consumer, 2, value_format="protobuf", registry=client)


def test_keys_and_values_with_ids_in_headers_are_columns(
    servers: str, topic: str, client: SchemaRegistryClient, consumer: Consumer[Any, Any]
) -> None:
    conf = {"schema.id.serializer": schemas.header_schema_id_serializer}
    with Producer(
        bootstrap_servers=servers,
        key_serializer=schemas.AvroSerializer(client, '"long"', conf=conf),
        value_serializer=schemas.AvroSerializer(client, ORDER, conf=conf),
    ) as producer:
        producer.send(topic, ROWS[0], key=7, headers=[("other", b"x"), ("null", None)])
    send(servers, topic, schemas.AvroSerializer(client, NEWER), [{"id": 9, "item": None, "price": 2.0}])
    read_from(consumer, topic)
    found: list[Any] = []
    while len(found) < 2:
        table = consumer.poll_arrow(10, key_format="avro", value_format="avro", registry=client)
        found += table.select(["key", "value"]).to_pylist()

    assert found == [
        {"key": 7, "value": {**ROWS[0], "price": 0.5}},
        {"key": None, "value": {"id": 9, "item": None, "price": 2.0}},
    ]


def test_a_schema_of_another_format_is_named(
    servers: str, topic: str, client: SchemaRegistryClient, consumer: Consumer[Any, Any]
) -> None:
    send(servers, topic, schemas.AvroSerializer(client, ORDER), ROWS[:1])
    read_from(consumer, topic)

    with pytest.raises(SerializationError, match="schema 1 is AVRO, not JSON"):
        poll_rows(consumer, 1, value_format="json", registry=client)


def test_an_unreadable_value_is_an_error_and_then_null_if_wished(
    servers: str, topic: str, client: SchemaRegistryClient, consumer: Consumer[Any, Any]
) -> None:
    send(servers, topic, schemas.AvroSerializer(client, ORDER), ROWS[:1])
    send(servers, topic, None, [b"{}", b"\0\0\0\0\xff...", b"\0\0\0\0\1\x04"])
    read_from(consumer, topic)

    with pytest.raises(
        SerializationError, match=rf"the value at offset 1 of {topic}-0 cannot be read: there is no schema id"
    ):
        poll_rows(consumer, 4, value_format="avro", registry=client)

    assert poll_rows(consumer, 4, value_format="avro", registry=client, decode_errors="null") == [
        ROWS[0],
        None,
        None,
        None,
    ]


def test_wrong_arguments_are_explained(consumer: Consumer[Any, Any]) -> None:
    with pytest.raises(ValueError, match="value_format = 'xml': must be one of avro, json, protobuf"):
        consumer.poll_arrow(0, value_format="xml")
    with pytest.raises(TypeError, match="registry = None: must be an address"):
        consumer.poll_arrow(0, value_format="avro")
    with pytest.raises(ValueError, match="value_schema = 3 needs value_format"):
        consumer.poll_arrow(0, key_format="avro", value_schema=3)


def test_the_asyncio_consumer_polls_columns(
    servers: str, topic: str, client: SchemaRegistryClient, registry: SmallRegistry
) -> None:
    from ottla import aio

    send(servers, topic, schemas.AvroSerializer(client, ORDER), ROWS)

    async def use() -> list[Any]:
        async with aio.Consumer(bootstrap_servers=servers, auto_offset_reset="earliest") as consumer:
            consumer.assign([ottla.TopicPartition(topic, 0)])
            table = await consumer.poll_arrow(10, value_format="avro", registry={"url": registry.url})
            return table.column("value").to_pylist()

    assert asyncio.run(use()) == ROWS


def test_a_table_is_sent_as_registered_values(
    servers: str, topic: str, client: SchemaRegistryClient, registry: SmallRegistry
) -> None:
    table = pa.table({"key": [1, 2, None], "row": [*ROWS[:2], None], "other": [0, 0, 0]})
    with Producer(bootstrap_servers=servers) as producer:
        producer.send_table(
            topic, table, value="row", value_format="avro", value_schema=ORDER, key_format="avro", key_schema='"long"',
            registry=client,
        ).result(10)  # fmt: skip
        producer.send_table(topic, table, key=None, value="row", value_format="avro", registry=registry.url).result(10)

    read = schemas.AvroDeserializer(client)
    found = ottla.read_table(topic, bootstrap_servers=servers).select(["key", "value"]).to_pylist()
    assert [(read(row["key"]), read(row["value"])) for row in found] == [
        (1, ROWS[0]), (2, ROWS[1]), (None, None), (None, ROWS[0]), (None, ROWS[1]), (None, None),
    ]  # fmt: skip


def test_a_row_that_does_not_fit_is_named(servers: str, topic: str, client: SchemaRegistryClient) -> None:
    table = pa.table({"value": [ROWS[0], {"id": 1, "item": None}]})
    with (
        Producer(bootstrap_servers=servers) as producer,
        pytest.raises(
            SerializationError, match=rf"row 1 of the value: .*subject '{topic}-value': field Order.item is None"
        ),
    ):
        producer.send_table(topic, table, value_format="avro", value_schema=ORDER, registry=client)


def test_the_asyncio_producer_sends_tables(
    servers: str, topic: str, client: SchemaRegistryClient, registry: SmallRegistry
) -> None:
    from ottla import aio

    async def use() -> None:
        async with aio.Producer(bootstrap_servers=servers) as producer:
            table = pa.table({"value": ROWS})
            await producer.send_table(
                topic, table, value_format="avro", value_schema=ORDER, registry={"url": registry.url}
            )

    asyncio.run(use())

    read = schemas.AvroDeserializer(client)
    values = ottla.read_table(topic, bootstrap_servers=servers).column("value").to_pylist()
    assert [read(value) for value in values] == ROWS


def test_a_table_is_sent_as_registered_json(
    servers: str, topic: str, client: SchemaRegistryClient, consumer: Consumer[Any, Any]
) -> None:
    schema = json.dumps(
        {
            "type": "object",
            "required": ["id", "note"],
            "properties": {
                "id": {"type": "integer"},
                "note": {"type": ["null", "string"]},
                "item": {"type": "string"},
                "lines": {"type": "array", "items": {"$ref": "#/definitions/Line"}},
                "counts": {"type": "object", "additionalProperties": {"type": "integer"}},
                "any": {"type": ["string", "object"]},
                "at": {"type": "string", "format": "date-time"},
            },
            "definitions": {"Line": {"type": "object", "properties": {"sku": {"type": "string"}}}},
        }
    )
    line: Any = pa.struct([pa.field("sku", pa.string())])
    fields: dict[str, Any] = {
            "id": pa.int32(), "note": pa.string(), "item": pa.string(), "lines": pa.list_(line),
            "counts": pa.map_(pa.string(), pa.int64()), "any": pa.string(), "at": pa.timestamp("ns", "UTC"),
    }  # fmt: skip
    kind: Any = pa.struct(fields)
    moment = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    rows = [
        {"id": 1, "lines": [{"sku": "a"}, {"sku": None}], "counts": [("x", 1)], "any": '{"b":[2]}', "at": moment},
        None,
        {"id": 2, "note": "n", "item": "tea", "any": '"text"'},
    ]
    table = pa.table({"key": pa.array([1, 2, 3]), "value": pa.array(rows, kind)})
    with Producer(bootstrap_servers=servers) as producer:
        producer.send_table(
            topic, table, value_format="json", value_schema=schema, key_format="json", key_schema='{"type": "integer"}',
            registry=client,
        ).result(10)  # fmt: skip
        producer.send_table(topic, table.slice(2), key=None, value_format="json", registry=client).result(10)
        wrong = pa.table({"value": [{"id": "seven", "note": None}]})
        with pytest.raises(SerializationError, match=r"row 0 of the value: .* field \$\.id: 'seven' is not of type"):
            producer.send_table(topic, wrong, value_format="json", registry=client)
        with pytest.raises(SerializationError, match="is JSON, not AVRO; use another format or subject"):
            producer.send_table(topic, wrong, value_format="avro", registry=client)

    found: list[Any] = ottla.read_table(topic, bootstrap_servers=servers).column("value").to_pylist()
    assert found[0][5:] == (
        b'{"id":1,"note":null,"lines":[{"sku":"a"},{}],"counts":{"x":1},"any":{"b":[2]},"at":"2026-01-02T03:04:05Z"}'
    )
    assert found[1] is None
    assert schemas.JSONDeserializer(None, schema_registry_client=client)(found[2]) == {
        "id": 2, "note": "n", "item": "tea", "any": "text",
    }  # fmt: skip
    read_from(consumer, topic)
    read = poll_rows(consumer, 4, value_format="json", registry=client)
    assert read[0] == {**dict.fromkeys(kind.names), **(rows[0] or {}), "at": "2026-01-02T03:04:05Z"}
    assert read[2] == read[3] == {**dict.fromkeys(kind.names), **(rows[2] or {})}


PROTO = """
syntax = "proto3";
package shop;
import "google/protobuf/timestamp.proto";
import "google/protobuf/duration.proto";
import "google/protobuf/struct.proto";
import "google/protobuf/wrappers.proto";
message All {
  enum Kind { TEA = 0; PEN = 7; }
  message Inner { int64 x = 1; repeated string ys = 2; }
  int64 id = 1;
  optional string note = 2;
  Kind kind = 3;
  Inner inner = 4;
  repeated Inner inners = 5;
  map<string, Inner> by_name = 6;
  map<int32, double> by_number = 7;
  google.protobuf.Timestamp at = 8;
  google.protobuf.Duration span = 9;
  google.protobuf.Struct any = 10;
  google.protobuf.Int32Value count = 11;
  oneof choice { string text = 12; uint64 number = 13; }
  All next = 14;
  repeated Kind kinds = 15;
  bytes data = 16;
  float ratio = 17;
}
"""


def test_columns_of_protobuf_are_sent_as_they_were_read(servers: str, topic: str, consumer: Consumer[Any, Any]) -> None:
    rows = [
        {
            "id": 1, "note": "", "kind": "PEN", "inner": {"x": 5, "ys": ["a", "b"]}, "inners": [{"x": 1, "ys": []}],
            "by_name": [("k", {"x": 2, "ys": ["c"]})], "by_number": [(3, 0.5)],
            "at": datetime(1969, 1, 2, 3, 4, 5, 6, UTC), "span": timedelta(seconds=-1, microseconds=5),
            "any": '{"a": [1.0, null]}', "count": 0, "text": None, "number": 2**64 - 1, "next": '{"id": "9"}',
            "kinds": ["TEA", "5"], "data": b"\xff", "ratio": 0.25,
        },
        None,
    ]  # fmt: skip
    fields: dict[str, Any] = {"id": pa.int64(), "note": pa.string()}
    with running_registry(servers) as server:
        registry = f"http://{server.address}"
        with Producer(bootstrap_servers=servers) as producer:
            small = pa.table({"value": pa.array([{"id": 7}], pa.struct(fields))})
            producer.send_table(topic, small, value_format="protobuf", value_schema=PROTO, registry=registry).result(10)
            read_from(consumer, topic)
            first = consumer.poll_arrow(10, value_format="protobuf", registry=registry).column("value")
            assert [row and row["id"] for row in first.to_pylist()] == [7]
            table = pa.table({"value": pa.array(rows, first.type)})
            producer.send_table(topic, table, value_format="protobuf", registry=registry).result(10)
            for wrong, text in WRONG_MESSAGES:
                with pytest.raises(SerializationError, match=text):
                    producer.send_table(topic, pa.table({"value": [wrong]}), value_format="protobuf", registry=registry)
        assert poll_rows(consumer, 2, value_format="protobuf", registry=registry) == rows


WRONG_MESSAGES: list[tuple[Any, str]] = [
    ({"other": 1}, "row 0 of the value: .*shop.All has no field 'other'; its fields are id, note"),
    ({"id": "seven"}, "field shop.All.id is 'seven': "),
    ({"kind": "CUP"}, "field shop.All.kind is 'CUP': it is not one of TEA, PEN"),
    ({"text": "a", "number": 1}, "the fields text and number of shop.All exclude each other"),
    ({"inner": {"ys": ["a", None]}}, "field shop.All.Inner.ys is .*: an item of a repeated field cannot be null"),
    ({"any": "{"}, "field shop.All.any is '{': "),
    (5, "shop.All is 5; it must be a struct"),
]
