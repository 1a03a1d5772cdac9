"""Pipelines over registered values: a registry, exactly-once topics, and schemas that change between two runs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from ottla import Broker
from ottla.cli.pipelines.pipeline import plan_lines, plan_of
from ottla.pipelines.file.reading import read_text
from ottla.pipelines.manager.manager import Manager, build_all
from ottla.pipelines.manager.state_directory import StateDirectory
from ottla.pipelines.place import PipelineFileError
from ottla.registry.access import hash_password
from ottla.schemas import (
    AvroDeserializer,
    AvroSerializer,
    JSONSerializer,
    MessageField,
    Schema,
    SchemaRegistryClient,
    SerializationContext,
)
from tests.registry.running import running_registry
from tests.spark.pipelines.test_manager import committed
from tests.spark.topics import Topics

pytestmark = pytest.mark.heavy

LOGIN = "etl:s3cr3t-of-etl"
AVRO = {"valueFormat": "avro"}


def order(*fields: tuple[str, Any]) -> dict[str, Any]:
    named = [
        {"name": name, "type": kind, **({"default": None} if isinstance(kind, list) else {})} for name, kind in fields
    ]
    return {"type": "record", "name": "Order", "fields": named}


OLD = order(("id", "long"), ("item", "string"))
NEW = order(("id", "long"), ("item", "string"), ("price", ["null", "double"]))
WITHOUT_ITEM = order(("id", "long"), ("price", ["null", "double"]))


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
    topic = {"topic": "_schemas-of-pipelines", "group": "registry-of-pipelines"}
    with running_registry(broker.bootstrap_servers, auth_file=str(file), **topic) as server:
        yield f"http://{server.address}"


class Pipelines:
    """A folder with a pipeline file."""

    def __init__(self, topics: Topics, spark: SparkSession, address: str, path: Path) -> None:
        self.topics, self.spark, self.path = topics, spark, path
        self.client = SchemaRegistryClient({"url": address, "basic.auth.user.info": LOGIN})
        self.settings = {
            "bootstrap.servers": topics.servers,
            "schemaRegistryUrl": address,
            "schemaRegistryBasicAuthUserInfo": "${env:LOGIN}",
        }
        self.homes: dict[str, StateDirectory] = {}

    def read(self, **pipelines: Any) -> list[Any]:
        text = json.dumps({"settings": self.settings, "pipelines": pipelines})
        return read_text(text.encode(), "p.yaml", self.path, {"LOGIN": LOGIN})

    def run(self, **pipelines: Any) -> None:
        events: list[Any] = []
        assert Manager(self.read(**pipelines), self.spark, once=True, on_event=events.append).run(), events

    def plan(self, **pipelines: Any) -> list[str]:
        reads = self.read(**pipelines)
        homes = {read.name: StateDirectory(self.path / "state", read.name) for read in reads}
        plans = [plan_of(one, homes[one.read.name]) for one in build_all(reads, self.spark, homes)]
        return [line.strip() for plan in plans for line in plan_lines(plan)]

    def send(self, topic: str, schema: Any, *rows: Any) -> None:
        serialize = AvroSerializer(self.client, json.dumps(schema))
        context = SerializationContext(topic, MessageField.VALUE)
        values = [serialize(row, context) for row in rows]
        self.topics.send_bytes(topic, *[value for value in values if value is not None])

    def values(self, topic: str) -> list[tuple[int, Any]]:
        """Return the schema id and the value of each committed record that is not a tombstone."""
        read = AvroDeserializer(self.client)
        context = SerializationContext(topic, MessageField.VALUE)
        found = [one for one in committed(self.topics.servers, topic) if one.value is not None]
        return [(int.from_bytes(one.value[1:5], "big"), read(one.value, context)) for one in found]

    def latest_id(self, topic: str) -> int | None:
        self.client.clear_latest_caches()
        return self.client.get_latest_version(f"{topic}-value").schema_id


@pytest.fixture
def pipelines(topics: Topics, spark: SparkSession, address: str, tmp_path: Path) -> Iterator[Pipelines]:
    made = Pipelines(topics, spark, address, tmp_path)
    with made.client:
        yield made


def copy(source: str, sink: str, query: str | None = None, **more: Any) -> dict[str, Any]:
    steps = [] if query is None else [{"sql": query}]
    given = {"type": "topic", "topic": source, **AVRO}
    return {"source": given, "transforms": steps, "sink": {"type": "topic", "topic": sink, **AVRO, **more}}


def test_registered_values_are_copied_exactly_once_with_the_id_of_their_schema(
    pipelines: Pipelines, topics: Topics, tmp_path: Path
) -> None:
    source, sink = topics.create("in", 1), f"{topics.prefix}-out"
    pipelines.send(source, OLD, {"id": 1, "item": "tea"}, {"id": 2, "item": "milk"})
    pipelines.run(p=copy(source, sink, "select id * 10 as id, item from input"))
    first = pipelines.latest_id(sink)
    assert pipelines.values(sink) == [(first, {"id": 10, "item": "tea"}), (first, {"id": 20, "item": "milk"})]

    for commit in (tmp_path / "state" / "p" / "checkpoint" / "commits").iterdir():
        commit.unlink()  # as after a kill between the last record and the commit: Spark runs the batch again
    pipelines.send(source, NEW, {"id": 3, "item": "jam", "price": 1.5})
    pipelines.run(p=copy(source, sink, "select id * 10 as id, item from input"))
    assert [value["id"] for _, value in pipelines.values(sink)] == [10, 20, 30]
    assert {number for number, _ in pipelines.values(sink)} == {first}


def test_a_new_column_of_the_source_becomes_a_new_version_of_the_sink(pipelines: Pipelines, topics: Topics) -> None:
    source, sink = topics.create("in", 1), f"{topics.prefix}-out"
    pipelines.send(source, OLD, {"id": 1, "item": "tea"})
    p = copy(source, sink)
    assert not any("changed" in line for line in pipelines.plan(p=p))
    pipelines.run(p=p)
    first = pipelines.latest_id(sink)
    pipelines.send(source, NEW, {"id": 2, "item": "jam", "price": 1.5})

    assert pipelines.plan(p=p)[-1] == (
        "the schema of the values has changed since the last run: column price double was added; the pipeline continues with it"
    )
    pipelines.run(p=p)

    second = pipelines.latest_id(sink)
    assert first != second
    assert pipelines.values(sink) == [
        (first, {"id": 1, "item": "tea"}),
        (second, {"id": 2, "item": "jam", "price": 1.5}),
    ]
    assert "changed" not in pipelines.plan(p=p)[-1]


def test_a_column_that_a_transform_needs_and_that_was_removed_stops_the_plan_with_the_cause(
    pipelines: Pipelines, topics: Topics
) -> None:
    source, sink = topics.create("in", 1), f"{topics.prefix}-out"
    pipelines.send(source, OLD, {"id": 1, "item": "tea"})
    p = copy(source, sink, "select id, item from input")
    pipelines.run(p=p)
    pipelines.client.set_compatibility(f"{source}-value", "NONE")
    pipelines.send(source, WITHOUT_ITEM, {"id": 2, "price": 1.5})
    with pytest.raises(PipelineFileError, match=r"item.*since the last run: .*column item string was removed"):
        pipelines.plan(p=p)
    pipelines.client.set_compatibility(f"{sink}-value", "FULL")
    with pytest.raises(
        PipelineFileError, match=f"the schema of the rows is not compatible with subject '{sink}-value'"
    ):
        pipelines.plan(p=copy(source, sink, "select cast(id as string) as id from input"))


def test_values_are_written_with_a_registered_version_and_read_by_a_pipeline_behind(
    pipelines: Pipelines, topics: Topics
) -> None:
    source, middle, sink = topics.create("in", 1), topics.create("middle", 1), f"{topics.prefix}-out"
    topics.send(source, '{"id": 7, "item": "tea"}', None)
    number = pipelines.client.register_schema(f"{middle}-value", Schema(json.dumps(OLD)))
    lines = {"type": "topic", "topic": source, "valueFormat": "json", "valueSchema": "id bigint, item string"}
    first = {"source": lines, "sink": {"type": "topic", "topic": middle, **AVRO, "valueSchemaVersion": "latest"}}
    second = copy(middle, sink, "select id, upper(item) as item, _tombstone, _key from input")
    third = copy(sink, f"{sink}-2")

    pipelines.run(first=first, second=second, third=third)  # the subject that the third reads does not exist yet

    assert pipelines.values(middle)[0] == (number, {"id": 7, "item": "tea"})
    assert [one.value for one in committed(topics.servers, middle)][1] is None
    assert pipelines.values(f"{sink}-2")[0][1] == {"id": 7, "item": "TEA"}
    assert committed(topics.servers, f"{sink}-2")[1].value is None
    other = {**first, "transforms": [{"sql": "select id from input"}]}
    with pytest.raises(PipelineFileError, match="has the field 'item' without a default, and the rows differ"):
        pipelines.plan(first=other)


def test_registered_json_and_protobuf_are_read_and_written_with_keys(
    pipelines: Pipelines, topics: Topics, tmp_path: Path
) -> None:
    source, middle, sink = topics.create("in", 1), f"{topics.prefix}-middle", f"{topics.prefix}-out"
    schema = json.dumps({"type": "object", "properties": {"id": {"type": "integer"}, "item": {"type": "string"}}})
    value = JSONSerializer(schema, pipelines.client)({"id": 7}, SerializationContext(source, MessageField.VALUE))
    assert value is not None
    topics.send_bytes(source, value)
    (tmp_path / "order.proto").write_text(
        'syntax = "proto3"; message Order { int64 id = 1; optional string item = 2; }'
    )
    of_json = {"type": "topic", "valueFormat": "json"}
    first = {
        "source": {**of_json, "topic": source},
        "sink": {**of_json, "topic": middle, "registered": True, "key": "id", "keyFormat": "json"},
    }
    of_messages = {"type": "topic", "valueFormat": "protobuf", "keyFormat": "avro", "topic": sink}
    second = {
        "source": {**of_json, "topic": middle, "keyFormat": "json"},
        "transforms": [{"sql": "select id, coalesce(item, 'tea') as item, _key from input"}],
        "sink": {**of_messages, "valueSchema": "order.proto", "keySubject": f"{sink}-ids"},
    }

    pipelines.run(first=first, second=second)  # the subjects that the second reads do not exist yet

    (record,) = committed(topics.servers, middle)
    assert (record.key[5:], record.value[5:]) == (b"7", b'{"id":7}')
    assert pipelines.client.get_versions(f"{sink}-ids") == [1]
    third = {"source": {**of_messages, "keySubject": f"{sink}-ids"}, "sink": {"type": "topic", "topic": f"{sink}-2"}}
    pipelines.run(third=third)
    (record,) = committed(topics.servers, f"{sink}-2")
    assert (record.key, record.value) == (b"7", b'{"id":7,"item":"tea"}')
    assert "changed" not in pipelines.plan(second=second, third=third)[-1]
