"""The console with a real registry: subjects, versions, differences, checks, and decoded records."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from ottla.broker.embedding.embedded_broker import Broker
from ottla.client.producer import Producer
from ottla.console.schema_registry import LIMITS, ConsoleRegistry
from ottla.schemas import (
    AvroSerializer,
    JSONSerializer,
    MessageField,
    ProtobufSerializer,
    Schema,
    SchemaRegistryClient,
    SerializationContext,
    header_schema_id_serializer,
)
from tests.console.conftest import Browser, browser_of
from tests.registry.running import running_registry
from tests.schemas import messages

SCRIPT = "<script>alert(1)</script>"
FIRST = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}
ITEM = {"name": "item", "type": "string", "default": SCRIPT}
SECOND = {**FIRST, "fields": [*FIRST["fields"], ITEM]}
WITHOUT_DEFAULT = {**FIRST, "fields": [*FIRST["fields"], {"name": "item", "type": "string"}]}
JSON_SCHEMA = {"title": "Bill", "type": "object", "properties": {"id": {"type": "integer"}}}


@pytest.fixture(scope="module")
def client(broker: Broker) -> Iterator[SchemaRegistryClient]:
    with running_registry(broker.bootstrap_servers) as server, SchemaRegistryClient(server.url) as client:
        yield client


@pytest.fixture(scope="module")
def schemas(broker: Broker, client: SchemaRegistryClient) -> Iterator[Browser]:
    """A console with a registry."""
    with browser_at(broker, client.config()["url"]) as browser:
        yield browser


@contextmanager
def browser_at(broker: Broker, url: str) -> Iterator[Browser]:
    registry = ConsoleRegistry(SchemaRegistryClient({**LIMITS, "url": url}))
    with browser_of(broker.bootstrap_servers, registry=registry) as browser:
        yield browser


def send(broker: Broker, topic: str, *values: bytes | None, headers: Any = ()) -> None:
    with Producer(broker.client_settings()) as producer:
        for value in values:
            producer.send(topic, value, headers=headers, partition=0).result(60)


def values_of(browser: Browser, topic: str) -> list[dict[str, Any]]:
    return [each["value"] for each in browser.ask("records", topic=topic, start="earliest")["records"]]


def test_subjects_are_listed_with_their_newest_version(schemas: Browser, client: SchemaRegistryClient) -> None:
    client.register_schema(SCRIPT, Schema(json.dumps(FIRST)))
    number = client.register_schema(SCRIPT, Schema(json.dumps(SECOND)))
    client.set_compatibility(SCRIPT, "FULL")

    seen = schemas.ask("subjects", text="SCRIPT>alert")

    row = {"name": SCRIPT, "type": "AVRO", "version": 2, "id": number, "compatibility": "FULL"}
    assert seen == {"count": 1, "from": 0, "subjects": [row]}
    assert schemas.ask("subjects", text="nothing")["subjects"] == []


def test_a_version_is_shown_with_what_changed(schemas: Browser, client: SchemaRegistryClient) -> None:
    client.register_schema("changed-value", Schema(json.dumps(FIRST)))
    client.register_schema("changed-value", Schema(json.dumps(SECOND)))

    newest, first = (schemas.ask("subject", name="changed-value", version=version) for version in ("", 1))

    assert (newest["versions"], newest["version"], newest["before"]) == ([1, 2], 2, 1)
    assert json.loads(newest["schema"]) == SECOND
    assert newest["diff"][:2] == ["--- version 1", "+++ version 2"]
    assert '+      "name": "item",' in newest["diff"]
    assert (first["version"], first["before"], first["diff"]) == (1, None, [])
    client.delete_subject("changed-value", permanent=True)
    client.register_schema("changed-value", Schema('"int"'))
    assert schemas.ask("subject", name="changed-value", version=1)["schema"] == '"int"'


def test_a_schema_is_checked_and_not_registered(schemas: Browser, client: SchemaRegistryClient) -> None:
    client.register_schema("checked-value", Schema(json.dumps(FIRST)))

    status, fits = schemas.order("check-schema", name="checked-value", schema=json.dumps(SECOND))
    assert (status, fits) == (200, {"compatibility": "BACKWARD", "reasons": []})
    status, refused = schemas.order("check-schema", name="checked-value", schema=json.dumps(WITHOUT_DEFAULT))
    assert (status, "READER_FIELD_MISSING_DEFAULT_VALUE" in refused["reasons"][0]) == (200, True)
    status, wrong = schemas.order("check-schema", name="checked-value", schema="{")
    assert (status, "error" in wrong) == (502, True)
    assert client.get_versions("checked-value") == [1]
    assert schemas.send("GET", "/api/check-schema?name=checked-value&schema=x")[0] == 405


def test_an_unknown_subject_is_a_clear_error(schemas: Browser) -> None:
    status, _, body = schemas.send("GET", "/api/subject?name=nowhere")
    assert (status, "'nowhere'" in json.loads(body)["error"]) == (502, True)


def test_records_of_all_formats_are_decoded(broker: Broker, schemas: Browser, client: SchemaRegistryClient) -> None:
    context = SerializationContext("decoded", MessageField.VALUE)
    conf = {"subject.name.strategy.type": "TOPIC_RECORD"}
    avro = AvroSerializer(client, json.dumps(SECOND), conf=conf)({"id": 7, "item": SCRIPT}, context)
    as_json = JSONSerializer(json.dumps(JSON_SCHEMA), client, conf=conf)({"id": 8}, context)
    order = messages.Order(id=9, place=messages.Place(street="Ilica"))
    as_order = ProtobufSerializer(messages.Order, client, conf)(order, context)
    as_line = ProtobufSerializer(messages.Line, client, conf)(messages.Line(item="tea"), context)
    send(broker, "decoded", avro, as_json, as_order, as_line, b"plain", None, b"\0\0\0\0\0\0\0\7")

    *decoded, plain, null, number = values_of(schemas, "decoded")

    assert [each["form"] for each in decoded] == ["Avro", "JSON Schema", "Protobuf", "Protobuf"]
    assert [json.loads(each["text"]) for each in decoded] == [
        {"id": 7, "item": SCRIPT},
        {"id": 8},
        {"id": "9", "place": {"street": "Ilica"}},
        {"item": "tea"},
    ]
    assert json.loads(client.get_schema(decoded[0]["schema"]).schema_str or "") == SECOND
    assert (plain["form"], plain["text"], null["form"]) == ("text", "plain", "null")
    assert number == {"form": "hex", "text": "00 00 00 00 00 00 00 07", "bytes": 8, "cut": False}


def test_protobuf_files_of_google_are_known_and_an_unknown_message_is_an_error(
    broker: Broker, schemas: Browser, client: SchemaRegistryClient
) -> None:
    text = """
        syntax = "proto3";
        import "google/protobuf/timestamp.proto";
        message Visit { google.protobuf.Timestamp at = 1; }
    """
    prefix = b"\0" + client.register_schema("visits-value", Schema(text, "PROTOBUF")).to_bytes(4, "big")
    send(broker, "visits", prefix + b"\0" + b"\x0a\x02\x08\x3c", prefix + b"\2\6")

    visit, unknown = values_of(schemas, "visits")

    assert json.loads(visit["text"]) == {"at": "1970-01-01T00:01:00Z"}
    assert unknown["why"] == "not decoded: the schema has no message [3]; another schema wrote the value"


def test_a_guid_in_the_headers_is_followed(broker: Broker, schemas: Browser, client: SchemaRegistryClient) -> None:
    headers: list[tuple[str, bytes]] = []
    context = SerializationContext("headed", MessageField.VALUE, headers)
    conf = {"schema.id.serializer": header_schema_id_serializer}
    send(broker, "headed", AvroSerializer(client, json.dumps(FIRST), conf=conf)({"id": 1}, context), headers=headers)

    (value,) = values_of(schemas, "headed")

    assert (value["form"], json.loads(value["text"])) == ("Avro", {"id": 1})


def test_a_value_that_cannot_be_decoded_shows_why_and_its_bytes(
    broker: Broker, schemas: Browser, client: SchemaRegistryClient
) -> None:
    number = client.register_schema("broken-value", Schema(json.dumps(FIRST)))
    send(broker, "broken", b"\0" + number.to_bytes(4, "big") + b"\xff", b"\0\x7f\xff\xff\xff!")

    cut, unknown = values_of(schemas, "broken")

    assert (cut["form"], cut["text"], cut["schema"]) == ("hex", f"00 00 00 00 {number:02x} ff", number)
    assert cut["why"].startswith(
        f"not decoded: the value cannot be read with schema {number} of subject 'broken-value'"
    )
    assert (unknown["text"], unknown["schema"]) == ("00 7f ff ff ff 21", 0x7FFFFFFF)
    assert unknown["why"].startswith("not decoded: ")
    assert "404" in unknown["why"]


def test_a_registry_that_is_gone_is_one_sentence(broker: Broker) -> None:
    send(broker, "orphans", *(b"\0\0\0\0" + bytes([number]) + b"x" for number in range(1, 4)))
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))  # and does not listen
        url = f"http://127.0.0.1:{bound.getsockname()[1]}"
        with browser_at(broker, url) as browser:
            status, _, body = browser.send("GET", "/api/subjects")
            values = values_of(browser, "orphans")

    sentence = f"no schema registry answers at {url} "
    assert (status, json.loads(body)["error"].startswith(sentence)) == (502, True)
    assert [(each["form"], each["why"].startswith(f"not decoded: {sentence}")) for each in values] == [
        ("hex", True)
    ] * 3


def test_a_silent_registry_is_asked_once_for_a_search(broker: Broker) -> None:
    send(broker, "waiting", *(b"\0\0\0\0" + bytes([number]) + b"x" for number in range(1, 4)))
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        registry = ConsoleRegistry(SchemaRegistryClient({**LIMITS, "timeout": 0.2, "url": url}))
        with browser_of(broker.bootstrap_servers, registry=registry) as browser:
            values = values_of(browser, "waiting")
            silent.setblocking(False)
            silent.accept()[0].close()
            with pytest.raises(BlockingIOError):
                silent.accept()

    assert ["timed out" in each["why"] for each in values] == [True] * 3


def test_a_console_without_a_registry_explains_how_to_configure_it(broker: Broker, browser: Browser) -> None:
    send(broker, "plain", b"\0\0\0\0\7x")
    assert browser.ask("subjects") is None
    status, _, body = browser.send("GET", "/api/subject?name=x")
    assert (status, json.loads(body)["error"]) == (400, "this console shows no schemas; start it with --registry URL")
    assert values_of(browser, "plain") == [{"form": "hex", "text": "00 00 00 00 07 78", "bytes": 6, "cut": False}]
