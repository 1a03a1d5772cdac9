"""Producing to topics with schema validation, with a real registry."""

from __future__ import annotations

import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla import Admin, Broker, ConfigResource, NewTopic, Producer
from ottla.errors import ErrorCode, KafkaError
from tests.broker.schema_validation.test_validation import with_id
from tests.broker.wire import Wire, batch, produce
from tests.registry.running import RegistryClient, running_registry

SCHEMA = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "int"}]}
VALIDATED = {"value.schema.validation": "true"}


@pytest.fixture(scope="module")
def registry(broker: Broker) -> Iterator[RegistryClient]:
    with running_registry(broker.bootstrap_servers) as server:
        yield RegistryClient(server.address)


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    """The broker with the topic `_schemas`."""
    with Broker() as broker:
        yield broker


@pytest.fixture(scope="module")
def validating(registry: RegistryClient) -> Iterator[Broker]:
    with Broker(schema_registry_url=f"http://{registry.address}") as broker:
        yield broker


@pytest.fixture
def topic(validating: Broker) -> str:
    name = f"orders-{uuid.uuid4().hex[:8]}"
    with Admin(bootstrap_servers=validating.bootstrap_servers) as admin:
        admin.create_topics([NewTopic(name, 1, configs=VALIDATED)])
    return name


@pytest.fixture
def wire(validating: Broker) -> Iterator[Wire]:
    with Wire(validating.bootstrap_servers) as wire:
        yield wire


@pytest.mark.parametrize("version", [3, 9, 12])
def test_records_are_accepted_from_the_registration_of_their_schema_on(
    wire: Wire, topic: str, registry: RegistryClient, version: int
) -> None:
    text = {**SCHEMA, "doc": topic}
    number = registry.register(f"other-{topic}", text).body["id"]
    rejected = wire.produce(topic, with_id(number), version=version)
    assert rejected.error_code == ErrorCode.INVALID_RECORD
    registry.register(f"{topic}-value", text)
    accepted = wire.produce(topic, with_id(number), with_id(number), version=version)
    assert (accepted.error_code, accepted.base_offset) == (0, 0)
    plain = wire.produce(topic, b"plain", version=version)
    assert plain.error_code == ErrorCode.INVALID_RECORD
    assert len(wire.fetch(topic).records or b"") > 0


def test_a_rejected_record_is_named_in_the_response(wire: Wire, topic: str, registry: RegistryClient) -> None:
    number = registry.register(f"{topic}-value", {**SCHEMA, "doc": topic}).body["id"]
    response = wire.ask(produce(topic, batch([with_id(number), b"plain"])), 11)
    (result,) = response.responses[0].partition_responses
    assert [each.batch_index for each in result.record_errors] == [1]
    assert "does not begin with the id" in result.error_message


def test_a_producer_gets_an_error_that_names_the_subject(validating: Broker, topic: str) -> None:
    with Producer(bootstrap_servers=validating.bootstrap_servers) as producer:
        future = producer.send(topic, with_id(987_654))
        with pytest.raises(KafkaError, match=f"id 987654, is not registered under {topic}-value"):
            future.result(20)


def test_validation_is_enabled_and_disabled_for_an_existing_topic(validating: Broker, topic: str, wire: Wire) -> None:
    resource = ConfigResource("topic", topic)
    with Admin(bootstrap_servers=validating.bootstrap_servers) as admin:
        admin.alter_configs({resource: {"value.schema.validation": "false"}})
        assert wire.produce(topic, b"plain").error_code == 0
        admin.alter_configs({resource: {"value.schema.validation": "true"}})
        assert wire.produce(topic, b"plain").error_code == ErrorCode.INVALID_RECORD
        assert admin.describe_configs([resource])[resource]["value.schema.validation"].value == "true"


def test_a_broker_without_a_registry_says_what_to_set(broker: Broker) -> None:
    with Wire(broker.bootstrap_servers) as wire:
        wire.create("needs-schemas", value_schema_validation="true")
        result = wire.produce("needs-schemas", with_id(1))
    assert result.error_code == ErrorCode.INVALID_CONFIG
    assert "set schema.registry.url" in (result.error_message or "")


def test_a_registry_that_is_down_is_an_error_that_producers_retry() -> None:
    with Broker(schema_registry_url="http://127.0.0.1:1") as broker, Wire(broker.bootstrap_servers) as wire:
        wire.create("t", value_schema_validation="true")
        result = wire.produce("t", with_id(1))
    assert result.error_code == ErrorCode.REQUEST_TIMED_OUT
    assert "the schema registry does not answer: http://127.0.0.1:1: " in (result.error_message or "")


def test_the_registry_of_the_command_validates_the_topics_of_its_broker(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "ottla", "broker", "--listen", "127.0.0.1:0", "--registry", "127.0.0.1:0"]
    process = subprocess.Popen([*command, "--data-dir", str(tmp_path)], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        address, registry_address = [process.stdout.readline().split()[1] for _ in range(2)]
        registry = RegistryClient(registry_address.removeprefix("http://"))
        number = registry.register("t-value", SCHEMA).body["id"]
        with Wire(address) as wire:
            wire.create("t", value_schema_validation="true")
            assert wire.produce("t", with_id(number)).error_code == 0
            assert wire.produce("t", with_id(number + 1)).error_code == ErrorCode.INVALID_RECORD
    finally:
        process.terminate()
        process.communicate(timeout=20)
