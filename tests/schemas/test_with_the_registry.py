"""Our and Confluent's serializers with Ottla's own schema registry."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

import ottla
import ottla.schemas as ours
from ottla.schemas import Schema, SchemaRegistryClient, SchemaRegistryError
from tests.registry.running import running_registry
from tests.schemas import confluent as theirs
from tests.schemas import messages
from tests.schemas.test_serializers import FORMATS, ORDER, VALUE, context

NUMBER = '{"type": "record", "name": "N", "fields": [{"name": "a", "type": "int"}]}'
WIDER = json.dumps(
    {
        "type": "record",
        "name": "N",
        "fields": [{"name": "a", "type": "long"}, {"name": "b", "type": "string", "default": "x"}],
    }
)


@pytest.fixture(scope="module")
def url(servers: str) -> Iterator[str]:
    with running_registry(servers) as server:
        yield server.url


@pytest.fixture
def client(url: str) -> Iterator[SchemaRegistryClient]:
    with SchemaRegistryClient({"url": url}) as made:
        yield made


@pytest.mark.parametrize("form", ["prefix", "header"])
@pytest.mark.parametrize("name", FORMATS)
def test_values_are_exchanged_with_confluents_serializers(
    name: str, form: str, url: str, client: SchemaRegistryClient
) -> None:
    write, read, value = FORMATS[name]
    topic = f"{name}-{form}"
    conf: list[dict[str, Any]] = [{}, {}]
    if form == "header":
        conf = [{"schema.id.serializer": one.header_schema_id_serializer} for one in (ours, theirs)]
    if name == "protobuf":
        conf = [{**one, "use.deprecated.format": False} for one in conf]
    our_context = context(topic, headers=[])
    with theirs.SchemaRegistryClient({"url": url}) as their_client:
        their_context = theirs.SerializationContext(topic, theirs.MessageField.VALUE, [])

        by_us = write(ours, client, conf[0])(value, our_context)
        by_them = write(theirs, their_client, conf[1])(value, their_context)

        if name != "json":  # their JSON has spaces
            assert by_us == by_them
        assert our_context.headers == their_context.headers
        assert read(ours, client)(by_them, our_context) == value
    with theirs.SchemaRegistryClient({"url": url}) as reading:  # another client: theirs keeps a written schema as text
        assert read(theirs, reading)(by_us, their_context) == value


def test_the_client_reads_what_the_registry_stores(client: SchemaRegistryClient) -> None:
    number = client.register_schema("stored-value", Schema(NUMBER))
    found = client.get_latest_version("stored-value")

    assert (found.version, found.schema_id) == (1, number)
    assert found.guid is not None
    assert client.get_schema_by_guid(found.guid) == client.get_schema(number)
    assert client.get_schema_versions(number)[0].subject == "stored-value"
    assert client.lookup_schema("stored-value", Schema(NUMBER)).version == 1
    assert "stored-value" in client.get_subjects("stored")
    assert set(client.get_schema_types()) == {"AVRO", "JSON", "PROTOBUF"}
    assert client.delete_version("stored-value", 1, permanent=True) == 1


def test_compatibility_is_checked_and_explained(client: SchemaRegistryClient) -> None:
    client.register_schema("checked-value", Schema(NUMBER))
    other = NUMBER.replace('"int"', '"string"')

    assert client.get_compatibility("checked-value") == "BACKWARD"
    assert client.test_compatibility_all_versions("checked-value", Schema(WIDER))
    assert client.explain_compatibility("checked-value", Schema(WIDER)) == []
    assert "TYPE_MISMATCH" in client.explain_compatibility("checked-value", Schema(other))[0]
    with pytest.raises(SchemaRegistryError) as info:
        client.register_schema("checked-value", Schema(other))
    assert (info.value.http_status_code, info.value.error_code) == (409, 409)
    assert client.set_compatibility("checked-value", "NONE") == "NONE"
    assert client.register_schema("checked-value", Schema(other)) > 0


def test_a_topic_of_two_versions_is_one_table(servers: str, topic: str, client: SchemaRegistryClient) -> None:
    rows: list[Any] = [(NUMBER, {"a": 1}), (WIDER, {"a": 2**40, "b": "y"})]
    for schema, row in rows:
        with ottla.Producer(
            bootstrap_servers=servers, value_serializer=ours.AvroSerializer(client, schema)
        ) as producer:
            producer.send(topic, row)
    with ottla.Consumer(bootstrap_servers=servers, auto_offset_reset="earliest") as consumer:
        consumer.assign([ottla.TopicPartition(topic, 0)])
        found: list[Any] = []
        while len(found) < 2:
            found += consumer.poll_arrow(10, value_format="avro", registry=client).column("value").to_pylist()

    assert found == [{"a": 1, "b": "x"}, {"a": 2**40, "b": "y"}]


def test_imported_files_are_registered(client: SchemaRegistryClient) -> None:
    ours.ProtobufSerializer(messages.Order, client)(messages.Order(id=1), context("imported"))

    (reference,) = client.get_latest_version("imported-value").schema.references
    assert client.get_referenced_by(str(reference.subject), 1)


def test_a_mismatch_names_the_subject(client: SchemaRegistryClient) -> None:
    with pytest.raises(
        ottla.SerializationError, match=r"schema \d+ of subject 'orders-value': field shop.Order.id is None"
    ):
        ours.AvroSerializer(client, ORDER)({**VALUE, "id": None}, context())


def test_what_was_deleted_before_can_be_deleted_permanently(client: SchemaRegistryClient) -> None:
    client.register_schema("gone", Schema(NUMBER))
    client.register_schema("gone", Schema(WIDER))
    assert client.delete_version("gone", 1) == 1
    assert client.delete_version("gone", 1, permanent=True) == 1
    assert client.delete_subject("gone") == [2]

    assert client.delete_subject("gone", permanent=True) == [2]

    assert "gone" not in client.get_subjects(deleted=True)
    with pytest.raises(SchemaRegistryError, match="Subject 'gone' not found"):
        client.delete_subject("gone", permanent=True)
