"""Registry clients of other projects, unchanged, against our registry."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from interop import node
from ottla import Broker
from rivals.apache_kafka import apache_kafka
from tests.registry.running import RegistryClient, running_registry

registry_client = pytest.importorskip("confluent_kafka.schema_registry")

USER = {
    "type": "record",
    "name": "User",
    "namespace": "a.b",
    "fields": [{"name": "name", "type": "string"}, {"name": "age", "type": ["null", "int"], "default": None}],
}
USER_JSON = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "title": "User",
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name"],
}


@pytest.fixture(scope="module")
def registry() -> Iterator[RegistryClient]:
    with Broker() as broker, running_registry(broker.bootstrap_servers) as server:
        yield RegistryClient(server.address)


@pytest.fixture
def client(registry: RegistryClient) -> Iterator[Any]:
    with registry_client.SchemaRegistryClient({"url": f"http://{registry.address}"}) as opened:
        yield opened


def context_of(topic: str) -> Any:
    from confluent_kafka.serialization import MessageField, SerializationContext

    return SerializationContext(topic, MessageField.VALUE)


def test_confluents_python_client_registers_looks_up_checks_and_deletes(client: Any) -> None:
    schema = registry_client.Schema(json.dumps(USER), "AVRO")

    schema_id = client.register_schema("python", schema)

    assert json.loads(client.get_schema(schema_id).schema_str) == USER
    assert client.lookup_schema("python", schema).version == 1
    assert client.get_latest_version("python").schema_id == schema_id
    assert client.get_versions("python") == [1]
    assert "python" in client.get_subjects()
    assert client.test_compatibility("python", schema)
    assert client.set_config(
        "python", registry_client.ServerConfig(compatibility=registry_client.ConfigCompatibilityLevel.FULL)
    )
    assert client.get_config("python").compatibility_level in ("FULL", registry_client.ConfigCompatibilityLevel.FULL)
    incompatible = {"type": "record", "name": "User", "fields": [{"name": "x", "type": "int"}]}
    narrower = registry_client.Schema(json.dumps(incompatible))
    with pytest.raises(registry_client.SchemaRegistryError) as raised:
        client.register_schema("python", narrower)
    assert raised.value.http_status_code == 409
    assert client.delete_subject("python") == [1]
    assert client.delete_subject("python", permanent=True)


def test_confluents_python_serializers_for_avro(client: Any, registry: RegistryClient) -> None:
    from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer

    value = {"name": "Ada", "age": 36}

    data = AvroSerializer(client, json.dumps(USER))(value, context_of("avro"))

    assert AvroDeserializer(client)(data, context_of("avro")) == value
    assert registry.get("/subjects/avro-value/versions") == [1]


def test_confluents_python_serializers_for_json_schema(client: Any) -> None:
    from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer

    value = {"name": "Ada", "age": 36}

    data = JSONSerializer(json.dumps(USER_JSON), client)(value, context_of("json"))

    assert JSONDeserializer(None, schema_registry_client=client)(data, context_of("json")) == value


def test_confluents_python_serializers_for_protobuf(client: Any) -> None:
    from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
    from google.rpc.error_details_pb2 import ErrorInfo
    from google.rpc.status_pb2 import Status

    for message in (Status(code=5, message="a"), ErrorInfo(reason="b", metadata={"c": "d"})):
        kind = type(message)
        topic = f"protobuf-{kind.DESCRIPTOR.name}"
        data = ProtobufSerializer(kind, client)(message, context_of(topic))
        assert ProtobufDeserializer(kind, schema_registry_client=client)(data, context_of(topic)) == message


def test_confluents_asyncio_client_and_serializer(registry: RegistryClient) -> None:
    from confluent_kafka.schema_registry import AsyncSchemaRegistryClient
    from confluent_kafka.schema_registry._async.avro import AsyncAvroDeserializer, AsyncAvroSerializer

    async def go() -> Any:
        async with AsyncSchemaRegistryClient({"url": f"http://{registry.address}"}) as client:
            serialize = await AsyncAvroSerializer(client, json.dumps(USER))
            data = await serialize({"name": "Ada", "age": None}, context_of("asyncio"))
            return await (await AsyncAvroDeserializer(client))(data, context_of("asyncio"))

    assert asyncio.run(go()) == {"name": "Ada", "age": None}


def test_a_registry_over_apache_kafka_elects_a_leader_and_reads_its_schemas_again() -> None:
    with apache_kafka() as kafka:
        with running_registry(kafka.bootstrap_servers) as server:
            assert RegistryClient(server.address).register("s", '"int"').body["id"] == 1
        with running_registry(kafka.bootstrap_servers) as server:
            again = RegistryClient(server.address)
            assert again.get("/subjects/s/versions") == [1]
            assert again.register("s", '"long"').body["id"] == 2


@pytest.mark.parametrize("package", node.REGISTRY_CLIENTS)
def test_a_client_from_npm_writes_and_reads(registry: RegistryClient, package: str) -> None:
    reason = node.missing_registry_clients()
    if reason:
        pytest.skip(reason)
    command, variables = node.command("registry.js", package, f"http://{registry.address}")

    done = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=60, check=False)

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == {"value": {"name": "Ada", "age": 36}, "refused": 409}
