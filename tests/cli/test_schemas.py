"""`ottla schemas`, and `ottla consume` and `produce` with registered values."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ottla import Admin, NewTopic, Producer
from ottla.schemas import AvroSerializer, Schema, SchemaRegistryClient
from tests.cli.conftest import ottla
from tests.registry.running import running_registry
from tests.schemas.small_registry import SmallRegistry, small_registry

FIELDS: list[Any] = [
    {"name": "id", "type": "long"},
    {"name": "data", "type": ["null", "bytes"]},
    {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
]
ORDER = json.dumps({"type": "record", "name": "Order", "fields": FIELDS})
LINE = '{"id":7,"data":"/w==","at":"2026-11-30T12:00:00Z","price":"1.50"}\n'


@pytest.fixture
def registry() -> Iterator[SmallRegistry]:
    with small_registry() as served:
        yield served


@pytest.fixture
def topic(address: str, topic: str) -> str:
    with Admin(bootstrap_servers=address) as admin:
        admin.create_topics([NewTopic(topic, 1)])
    return topic


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "order.avsc"
    path.write_text(ORDER)
    return path


def test_registered_values_are_json_on_both_sides(
    address: str, topic: str, registry: SmallRegistry, file: Path
) -> None:
    at = ("--bootstrap-server", address, "--value-format", "avro", "--registry", registry.url)
    assert ottla("schemas", "register", f"{topic}-value", file, "--registry", registry.url).status == 0

    assert ottla("produce", topic, *at, stdin=LINE) == (0, "", "")

    assert ottla("consume", topic, *at, "--from-beginning", "--exit") == (0, LINE, "")
    shown = ottla("consume", topic, *at, "--from-beginning", "--exit", "--json").out
    assert json.loads(json.loads(shown)["value"])["id"] == 7


def test_registered_json_is_shown(address: str, topic: str, registry: SmallRegistry) -> None:
    at = ("--bootstrap-server", address, "--value-format", "json", "--registry", registry.url)
    with SchemaRegistryClient(registry.url) as client:
        client.register_schema(f"{topic}-value", Schema('{"type": "object", "required": ["id"]}', "JSON"))

    assert ottla("produce", topic, *at, stdin='{"id": 7}\n').status == 0
    refused = ottla("produce", topic, *at, stdin="{}\n")

    assert ottla("consume", topic, *at, "--from-beginning", "--exit") == (0, '{"id":7}\n', "")
    assert refused.status == 1
    assert "'id' is a required property" in refused.sentence


def test_registered_protobuf_is_json_on_both_sides(address: str, topic: str, tmp_path: Path) -> None:
    money, file = tmp_path / "money.proto", tmp_path / "order.proto"
    money.write_text('syntax = "proto3"; package shop; message Money { int64 cents = 1; }')
    file.write_text(
        'syntax = "proto3"; package shop; import "money.proto"; import "google/protobuf/timestamp.proto"; '
        "message Order { int32 id = 1; Money price = 2; repeated string tags = 3; google.protobuf.Timestamp at = 4; }"
    )
    line = '{"id":7,"price":{"cents":"150"},"tags":["a"],"at":"2026-11-30T12:00:00Z"}\n'
    with running_registry(address, topic=f"_schemas-{topic}", group=f"registry-{topic}") as server:
        registry = ("--registry", f"http://{server.address}")
        at = ("--bootstrap-server", address, "--value-format", "protobuf", *registry)
        register = ("schemas", "register", *registry, "--type", "protobuf")
        assert ottla(*register, "money.proto", money).status == 0
        used = ottla(*register, f"{topic}-value", file, "--reference", "money.proto=money.proto:1")
        assert used.status == 0, used

        assert ottla("produce", topic, *at, stdin=line) == (0, "", "")

        assert ottla("consume", topic, *at, "--from-beginning", "--exit") == (0, line, "")
        query = f"select value.id, value.price.cents, value.tags[1] as tag from '{topic}'"
        found = ottla("sql", query, "--bootstrap-server", address, *registry, "--json")
        assert json.loads(found.out) == [{"id": 7, "cents": "150", "tag": "a"}]
        refused = ottla("produce", topic, *at, stdin='{"idd": 7}\n')
        assert refused.status == 1
        assert 'Message type "shop.Order" has no field named "idd"' in refused.sentence
        wrong = ottla("consume", topic, *at[:2], "--value-format", "avro", *registry, "--from-beginning", "--exit")
        assert "is PROTOBUF, not AVRO" in wrong.sentence


def test_keys_may_be_registered_too(address: str, topic: str, registry: SmallRegistry) -> None:
    with (
        SchemaRegistryClient(registry.url) as client,
        Producer(bootstrap_servers=address, key_serializer=AvroSerializer(client, '"long"')) as producer,
    ):
        producer.send(topic, b"tea", key=7)

    read = ottla(
        "consume", topic, "--bootstrap-server", address, "--key-format", "avro", "--registry", registry.url, "--keys",
        "--from-beginning", "--exit",
    )  # fmt: skip

    assert read.out == "7\ttea\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("consume", "t", "--value-format", "avro"), "name the schema registry with --registry URL"),
        (("consume", "t", "--value-format", "avro", "--registry", "localhost"), "must begin with http:// or https://"),
        (("consume", "t", "--value-format", "avro", "--registry", "http://x", "--format", "parquet"), "has no JSON"),
        (("schemas", "show", "x", "--id", "--registry", "http://x"), "--id needs a number"),
        (("schemas", "register", "x", __file__, "--registry", "http://x"), "name the type with --type"),
        (("schemas", "register", "x", __file__, "--type", "avro", "--reference", "x"), "expected NAME=SUBJECT:VERSION"),
    ],
)
def test_wrong_options_are_explained(arguments: tuple[str, ...], message: str) -> None:
    refused = ottla(*arguments)

    assert refused.status == 2
    assert message in refused.err


def test_schemas_are_registered_listed_shown_compared_and_deleted(registry: SmallRegistry, file: Path) -> None:
    at = ("--registry", registry.url)
    assert ottla("schemas", "register", "orders-value", file, *at) == (0, "orders-value: schema 1\n", "")
    file.write_text(json.dumps({"type": "record", "name": "Order", "fields": FIELDS[:1]}))
    assert ottla("schemas", "register", "orders-value", file, *at).out == "orders-value: schema 2\n"

    assert ottla("schemas", "list", *at).out.splitlines()[1].split() == ["orders-value", "1,", "2", "AVRO", "2"]
    assert json.loads(ottla("schemas", "list", "other", *at, "--json").out) == []
    assert json.loads(ottla("schemas", "show", "orders-value", "--version", 1, *at).out) == json.loads(ORDER)
    assert json.loads(ottla("schemas", "show", 2, "--id", *at, "--json").out)["id"] == 2
    assert '-      "name": "price",' in ottla("schemas", "diff", "orders-value", *at).out
    assert ottla("schemas", "delete", "orders-value", *at) == (0, "orders-value: deleted 1, 2\n", "")
    gone = ottla("schemas", "show", "orders-value", *at)
    assert gone.status == 1
    assert "40402" in gone.sentence


def test_similar_subjects_are_suggested(registry: SmallRegistry, file: Path) -> None:
    at = ("--registry", registry.url)
    assert ottla("schemas", "register", "orders-value", file, *at).status == 0

    assert ottla("schemas", "diff", "orders", *at).sentence == (
        "there is no subject 'orders'; did you mean 'orders-value'?"
    )
    assert ottla("schemas", "diff", "other", *at).sentence == (
        "there is no subject 'other'; ottla schemas list prints the subjects"
    )
    assert ottla("schemas", "diff", "orders-value", *at) == (
        0,
        "",
        "orders-value has only version 1: nothing to compare\n",
    )


def test_an_unreadable_record_is_reported_with_the_options_that_skip_it(
    address: str, topic: str, registry: SmallRegistry
) -> None:
    at = ("--bootstrap-server", address)
    assert ottla("produce", topic, *at, stdin="plain\n").status == 0
    read = ("consume", topic, *at, "--value-format", "avro", "--registry", registry.url)

    alone = ottla(*read, "--from-beginning", "--exit")
    member = ottla(*read, "--from-beginning", "--group", f"{topic}-readers", "--timeout", 30)

    assert alone.sentence.endswith("; --partition 0 --offset 1 reads what follows")
    assert member.sentence.endswith(
        f"; ottla groups reset-offsets {topic}-readers --topic {topic}:0 --to-offset 1 skips it"
    )


def test_a_check_prints_what_is_not_compatible(registry: SmallRegistry, file: Path) -> None:
    assert ottla("schemas", "check", "orders-value", file, "--registry", registry.url).status == 0
    registry.differences = ["READER_FIELD_MISSING_DEFAULT_VALUE: x"]

    checked = ottla("schemas", "check", "orders-value", file, "--registry", registry.url)

    assert checked.status == 1
    assert "order.avsc is not compatible with orders-value (BACKWARD): READER_FIELD" in checked.sentence
