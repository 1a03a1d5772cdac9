"""Registered values through the source and the sink: Spark, a broker, a registry, and foreign serializers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import confluent_kafka.schema_registry as confluent
import pytest
from confluent_kafka.schema_registry.avro import AvroSerializer as ConfluentSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from ottla import Broker, Producer
from ottla.registry.access import hash_password
from ottla.schemas import (
    AvroDeserializer,
    AvroSerializer,
    JSONSerializer,
    ProtobufSerializer,
    Schema,
    SchemaRegistryClient,
    header_schema_id_serializer,
)
from ottla.schemas import MessageField as Field
from ottla.schemas import SerializationContext as Context
from tests.registry.running import running_registry
from tests.schemas import messages
from tests.spark.test_stream import run
from tests.spark.topics import Topics

pytestmark = pytest.mark.heavy

LOGIN = "etl:s3cr3t-of-etl"
OPTIONS = {"valueFormat": "avro", "mode": "FAILFAST"}
OLD: dict[str, Any] = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "id", "type": "int"}, {"name": "item", "type": "string"}],
}
NEW: dict[str, Any] = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "item", "type": ["null", "string"]},
        {"name": "price", "type": "double", "default": 0.5},
    ],
}


@pytest.fixture(scope="module")
def address(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a registry that requires a login."""
    file = tmp_path_factory.mktemp("access") / "auth.json"
    name, password = LOGIN.split(":")
    rules = {
        "users": [{"username": name, "password": hash_password(password)}],
        "permissions": [{"username": name, "operation": "Write", "resource": "Subject:.*"}],
    }
    file.write_text(json.dumps(rules))
    with running_registry(broker.bootstrap_servers, auth_file=str(file)) as server:
        yield f"http://{server.address}"


@pytest.fixture
def client(address: str) -> Iterator[SchemaRegistryClient]:
    with SchemaRegistryClient({"url": address, "basic.auth.user.info": LOGIN}) as made:
        yield made


@pytest.fixture
def login(address: str) -> dict[str, str]:
    return {"schemaRegistryUrl": address, "schemaRegistryBasicAuthUserInfo": LOGIN}


def encode(client: SchemaRegistryClient, topic: str, schema: Any, *rows: Any) -> list[bytes]:
    serialize = AvroSerializer(client, json.dumps(schema))
    return [serialize(row, Context(topic, Field.VALUE)) for row in rows]  # type: ignore[misc]


def rows_of(frame: DataFrame) -> list[Any]:
    return [tuple(row.value) for row in frame.orderBy("offset").select("value").collect()]


def test_values_of_all_versions_are_columns_of_the_newest_version(
    topics: Topics, client: SchemaRegistryClient, login: dict[str, str]
) -> None:
    topic = topics.create()
    topics.send_bytes(topic, *encode(client, topic, OLD, {"id": 1, "item": "tea"}))
    topics.send_bytes(topic, *encode(client, topic, NEW, {"id": 2, "item": None, "price": 1.5}))
    frame = topics.read(subscribe=topic, **OPTIONS, **login)
    assert frame.schema["value"].dataType.simpleString() == "struct<id:bigint,item:string,price:double>"
    assert rows_of(frame) == [(1, "tea", 0.5), (2, None, 1.5)]
    old = topics.read(subscribe=topic, valueSchemaVersion=1, valueFormat="avro", **login)
    assert old.schema["value"].dataType.simpleString() == "struct<id:int,item:string>"
    given = topics.read(subscribe=topic, valueSchema=json.dumps(NEW), **OPTIONS, **login)
    assert rows_of(given) == rows_of(frame)


def test_values_of_a_foreign_serializer_have_the_types_of_values_without_ids(
    topics: Topics, address: str, login: dict[str, str]
) -> None:
    topic = topics.create()
    schema = {
        "type": "record",
        "name": "Reading",
        "namespace": "shop",
        "fields": [
            {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
            {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["A", "B"]}},
            {"name": "kinds", "type": {"type": "array", "items": "Kind"}},
            {"name": "mark", "type": {"type": "fixed", "name": "Mark", "size": 2}},
            {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}},
            {"name": "counts", "type": {"type": "map", "values": "Kind"}},
            {"name": "either", "type": ["int", "null", "long"], "default": 3},
            {"name": "uuid", "type": {"type": "string", "logicalType": "uuid"}},
            {"name": "clock", "type": {"type": "int", "logicalType": "time-millis"}},
        ],
    }
    moment = datetime(2020, 1, 2, 3, 4, 5, 678_000, UTC)
    row = {
        "at": moment,
        "kind": "B",
        "kinds": ["A", "B"],
        "mark": b"xy",
        "price": Decimal("1.25"),
        "counts": {"a": "A"},
        "either": 5,
        "uuid": "12345678-1234-5678-1234-567812345678",
        "clock": moment.time(),
    }
    theirs = confluent.SchemaRegistryClient({"url": address, "basic.auth.user.info": LOGIN})
    serialize = ConfluentSerializer(theirs, json.dumps(schema))
    data = serialize(row, SerializationContext(topic, MessageField.VALUE))
    theirs.close()
    assert data is not None
    topics.send_bytes(topic, data)
    topics.send(topic, None)
    registered = topics.read(subscribe=topic, **OPTIONS, **login)
    plain = topics.read(subscribe=topic, valueFormat="avro", valueSchema=json.dumps(schema), mode="FAILFAST")
    assert registered.schema == plain.schema
    first, second = registered.orderBy("offset").collect()
    assert second.value is None
    milliseconds = ((3 * 60 + 4) * 60 + 5) * 1000 + 678
    expected = {**row, "at": first.value.at, "mark": bytearray(b"xy"), "clock": milliseconds}
    assert first.value.asDict() == expected
    assert registered.selectExpr("unix_millis(value.at)").first()[0] == moment.timestamp() * 1000  # type: ignore[index]


def test_values_that_cannot_be_read_are_handled_by_the_mode(
    topics: Topics, client: SchemaRegistryClient, login: dict[str, str]
) -> None:
    topic = topics.create()
    (good,) = encode(client, topic, OLD, {"id": 1, "item": "tea"})
    number = client.register_schema(f"{topic}-json", Schema('{"type": "object"}', "JSON"))
    other = b"\0" + number.to_bytes(4, "big") + b"{}"
    topics.send_bytes(topic, good, b"poison", b"\0\x7f\0\0\0x", other, good[:-1])
    frame = topics.read(subscribe=topic, valueFormat="avro", **login).orderBy("offset")
    rows = frame.collect()
    assert (tuple(rows[0].value), rows[0]._error, rows[0]._raw) == ((1, "tea"), None, None)
    assert [row.value for row in rows[1:]] == [None] * 4
    assert rows[1]._error.startswith("value: there is no schema id in front of it")
    assert rows[2]._error == f"value: schema {0x7F000000} is not in the registry"
    assert rows[3]._error.startswith(f"value: schema {number} is JSON, not AVRO")
    assert rows[4]._raw == good[:-1]
    with pytest.raises(PySparkException, match=f"the record at offset 1 of {topic}-0 cannot be decoded: value: there"):
        topics.read(subscribe=topic, **OPTIONS, **login).collect()


def test_a_stream_converts_newer_versions_to_the_schema_of_the_query(
    topics: Topics, client: SchemaRegistryClient, login: dict[str, str], tmp_path: Path
) -> None:
    topic = topics.create()
    topics.send_bytes(topic, *encode(client, topic, OLD, {"id": 1, "item": "tea"}))
    stream = topics.stream(subscribe=topic, startingOffsets="earliest", **OPTIONS, **login)
    found: list[Any] = []

    def collect(frame: DataFrame, _: int) -> None:
        found.extend(rows_of(frame))

    run(stream, tmp_path, collect)
    newer = {**OLD, "fields": [*OLD["fields"], {"name": "price", "type": "double", "default": 0.5}]}
    topics.send_bytes(topic, *encode(client, topic, newer, {"id": 2, "item": "milk", "price": 1.5}))
    run(stream, tmp_path, collect)
    assert found == [(1, "tea"), (2, "milk")]
    created_later = topics.stream(subscribe=topic, **OPTIONS, **login)
    assert created_later.schema["value"].dataType.simpleString() == "struct<id:int,item:string,price:double>"


def test_json_and_protobuf_are_columns_also_with_ids_in_headers(
    topics: Topics, client: SchemaRegistryClient, login: dict[str, str]
) -> None:
    in_headers = {"schema.id.serializer": header_schema_id_serializer}
    schema = json.dumps({"type": "object", "properties": {"id": {"type": "integer"}, "tags": {"type": "object"}}})
    topic = topics.create("json")
    with Producer(
        bootstrap_servers=topics.servers, key_serializer=ProtobufSerializer(messages.Place, client)
    ) as producer:
        for conf, number in (({}, 1), (in_headers, 2)):
            write = JSONSerializer(schema, client, conf=conf)
            headers: list[Any] = [("other", b"x")]
            value = write({"id": number, "tags": {"a": [number]}}, Context(topic, Field.VALUE, headers))
            producer.send(topic, value, key=messages.Place(street="Elm"), headers=headers)
        producer.send(topic, None)
    frame = topics.read(subscribe=topic, valueFormat="json", keyFormat="protobuf", mode="FAILFAST", **login)
    assert frame.schema["value"].dataType.simpleString() == "struct<id:bigint,tags:string>"
    rows = frame.orderBy("offset").collect()
    assert [row.value and tuple(row.value) for row in rows] == [(1, '{"a":[1]}'), (2, '{"a":[2]}'), None]
    assert [row.key and row.key.street for row in rows] == ["Elm", "Elm", None]
    topic = topics.create("protobuf")
    order: Any = ProtobufSerializer(messages.Order, client)(messages.Order(id=7), Context(topic, Field.VALUE))
    topics.send_bytes(topic, order, b"poison")
    more = {"valueFormat": "protobuf", "valueMessage": "shop.Order"}
    rows = topics.read(subscribe=topic, **more, **login).orderBy("offset").collect()
    assert (rows[0].value.id, rows[0].value.place, rows[0]._error) == (7, None, None)
    assert rows[1]._error.startswith("value: there is no schema id in front of it")
    with pytest.raises(
        PySparkException, match=r"has no message 'shop\.Tea'; its messages are shop\.First, shop\.Order"
    ):
        topics.read(subscribe=topic, **more | {"valueMessage": "shop.Tea"}, **login)


def test_the_topics_of_a_query_need_one_schema(
    topics: Topics, client: SchemaRegistryClient, login: dict[str, str]
) -> None:
    first, second = topics.create("a"), topics.create("b")
    topics.send_bytes(first, *encode(client, first, OLD, {"id": 1, "item": "tea"}))
    both = {"assign": json.dumps({first: [0], second: [0]}), **OPTIONS, **login}
    with pytest.raises(PySparkException, match=f"the registry has no subject '{second}-value' for valueFormat = avro"):
        topics.read(**both)
    topics.send_bytes(second, *encode(client, second, NEW, {"id": 2, "item": None, "price": 1.5}))
    with pytest.raises(PySparkException, match="have different schemas, which one column cannot hold"):
        topics.read(**both)
    frame = topics.read(**both, valueSubject=f"{second}-value")
    assert sorted(row.value.id for row in frame.collect()) == [1, 2]


def test_the_login_is_not_printed(
    topics: Topics,
    client: SchemaRegistryClient,
    login: dict[str, str],
    address: str,
    capfd: pytest.CaptureFixture[str],
) -> None:
    topic = topics.create()
    topics.send_bytes(topic, *encode(client, topic, OLD, {"id": 1, "item": "tea"}))
    spelled = {"schema.registry.url": address, "schema.registry.basic.auth.user.info": LOGIN}
    frame = topics.read(subscribe=topic, **OPTIONS, **spelled)
    assert rows_of(frame) == [(1, "tea")]
    frame.explain(True)
    assert "s3cr3t" not in capfd.readouterr().out
    with pytest.raises(PySparkException, match=r"basic\.auth\.user\.info") as refused:
        topics.read(subscribe=topic, **OPTIONS, schemaRegistryUrl=address)
    wrong = {"schemaRegistryUrl": address, "schemaRegistryBasicAuthUserInfo": "etl:wr0ng"}
    with pytest.raises(PySparkException, match=r"basic\.auth\.user\.info") as refused_login:
        topics.read(subscribe=topic, **OPTIONS, **wrong)
    assert "wr0ng" not in str(refused.value) + str(refused_login.value)


def test_rows_are_written_with_a_schema_that_is_registered_once(
    topics: Topics, client: SchemaRegistryClient, login: dict[str, str], tmp_path: Path
) -> None:
    source, topic = topics.create("in"), topics.create("out")
    rows = topics.spark.sql(
        "SELECT named_struct('id', 7L, 'tags', array('a', null), 'price', 1.25BD, 'inner', named_struct('x', 1)) AS value"
    )
    options = topics.options({"topic": topic, "valueFormat": "avro", **login})
    rows.write.format("ottla").options(**options).mode("append").save()
    (record,) = topics.records(topic)
    read = AvroDeserializer(client)(record.value, Context(topic, Field.VALUE))
    assert read == {"id": 7, "tags": ["a", None], "price": Decimal("1.25"), "inner": {"x": 1}}
    assert client.get_versions(f"{topic}-value") == [1]
    topics.send(source, "a", "b")
    stream = topics.stream(subscribe=source, startingOffsets="earliest").selectExpr(
        "named_struct('id', offset, 'tags', array(CAST(value AS string)), 'price', 2.50BD, 'inner', named_struct('x', 2)) AS value"
    )
    query = (
        stream.writeStream.format("ottla")
        .options(**options)
        .option("checkpointLocation", str(tmp_path))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(60)
    found = rows_of(topics.read(subscribe=topic, **OPTIONS, **login))
    assert [(row[0], row[1]) for row in found] == [(7, ["a", None]), (0, ["a"]), (1, ["b"])]


def test_keys_are_written_as_registered_avro_too(
    topics: Topics, client: SchemaRegistryClient, login: dict[str, str]
) -> None:
    topic = topics.create("keys")
    more = {"topic": topic, "keyFormat": "avro", "keySubject": "people", **login}
    rows = topics.spark.sql("SELECT named_struct('id', 7L) AS key, 'tea' AS value")
    rows.write.format("ottla").options(**topics.options(more)).mode("append").save()
    (record,) = topics.records(topic)
    assert AvroDeserializer(client)(record.key, Context(topic, Field.KEY)) == {"id": 7}
    assert (record.value, client.get_versions("people")) == (b"tea", [1])
    with pytest.raises(PySparkException, match="needs a column 'key', and there is only value"):
        rows.select("value").write.format("ottla").options(**topics.options(more)).mode("append").save()


def test_rows_that_do_not_match_the_subject_are_an_error_before_a_row_is_written(
    topics: Topics, client: SchemaRegistryClient, login: dict[str, str]
) -> None:
    topic = topics.create()
    client.register_schema(f"{topic}-value", Schema(json.dumps(OLD)))
    options = topics.options({"topic": topic, "valueFormat": "avro", **login})
    rows = topics.spark.sql("SELECT named_struct('id', 'text') AS value")

    def write(**more: str) -> None:
        rows.write.format("ottla").options(**options | more).mode("append").save()

    with pytest.raises(
        PySparkException, match=f"the schema of the rows is not compatible with subject '{topic}-value'"
    ):
        write()
    with pytest.raises(PySparkException, match=f"subject '{topic}-value' does not have the schema of the rows"):
        write(autoRegisterSchemas="false")
    with pytest.raises(PySparkException, match="has the field 'item' without a default, and the rows differ"):
        write(valueSchema=json.dumps(OLD))
    assert topics.records(topic) == []


def test_rows_are_written_as_registered_json_and_protobuf(
    topics: Topics, client: SchemaRegistryClient, login: dict[str, str]
) -> None:
    def write(query: str, topic: str, **more: str) -> None:
        options = topics.options({"topic": topic, **login, **more})
        topics.spark.sql(query).write.format("ottla").options(**options).mode("append").save()

    topic = topics.create("json")
    rows = (
        "SELECT 7L AS key, named_struct('id', 7L, 'item', CAST(null AS string), 'price', 1.25BD, 'day', DATE'2026-01-02',"
        " 'tags', array('a', null), 'counts', map('x', 1), 'inner', named_struct('x', 1.5D)) AS value"
    )
    write(rows, topic, valueFormat="json", keyFormat="json")
    (record,) = topics.records(topic)
    assert (record.key[5:], record.value[5:]) == (
        b"7",
        b'{"id":7,"price":"1.25","day":"2026-01-02","tags":["a",null],"counts":{"x":1},"inner":{"x":1.5}}',
    )
    registered = json.loads(client.get_latest_version(f"{topic}-value").schema.schema_str or "")
    assert registered["properties"]["item"] == {"type": ["string", "null"]}
    assert set(registered["required"]) == {"id", "price", "day", "tags", "counts", "inner"}
    frame = topics.read(subscribe=topic, valueFormat="json", keyFormat="json", mode="FAILFAST", **login)
    (row,) = frame.collect()
    assert (row.key, row.value.id, row.value.item, row.value.tags, row.value.counts, row.value.inner.x) == (
        7, 7, None, ["a", None], {"x": 1}, 1.5,
    )  # fmt: skip
    wider = rows.replace("'id', 7L", "'id', 7L, 'note', CAST(null AS string)")
    write(wider, topic, valueFormat="json", keyFormat="json")
    assert client.get_versions(f"{topic}-value") == [1, 2]

    topic = topics.create("protobuf")
    schema = (
        'syntax = "proto3"; package shop; import "google/protobuf/timestamp.proto"; message First { string a = 1; }'
        " message Order { int64 id = 1; repeated string tags = 2; google.protobuf.Timestamp at = 3; }"
    )
    order = "SELECT named_struct('id', 7L, 'tags', array('a'), 'at', TIMESTAMP'2026-01-02 03:04:05.000006Z') AS value"
    more = {"valueFormat": "protobuf", "valueMessage": "shop.Order"}
    write(order, topic, **more, valueSchema=schema)
    write(order, topic, **more, valueSchemaVersion="latest")
    frame = topics.read(subscribe=topic, mode="FAILFAST", **more, **login)
    times = frame.selectExpr("value.id", "value.tags", "unix_micros(value.at) AS micros").collect()
    micros = int(datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC).timestamp()) * 1_000_000 + 6
    assert [tuple(time) for time in times] == [(7, ["a"], micros)] * 2
    with pytest.raises(PySparkException, match="has no field 'id', and the rows differ"):
        write(order, topic, valueFormat="protobuf", valueSchemaVersion="latest")
    with pytest.raises(PySparkException, match="option valueFormat = protobuf needs valueSchema"):
        write(order, topic, valueFormat="protobuf")
    with pytest.raises(PySparkException, match="is PROTOBUF, and valueFormat = json writes JSON"):
        write(order, topic, valueFormat="json", valueSchemaVersion="latest")
    with pytest.raises(PySparkException, match=r"of this task does not fit schema \d+: field shop\.Order\.id is 'x'"):
        write("SELECT named_struct('id', 'x') AS value", topic, **more, valueSchemaVersion="latest")
