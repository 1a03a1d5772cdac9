"""The fixture `ottla_registry`, in runs of pytest as users have them."""

from __future__ import annotations

import threading

import pytest

from ottla.errors import IllegalStateError
from ottla.free_ports import free_port
from ottla.testing.registry import TestedRegistry
from tests.testing.test_plugin import run

USES = """
import json
import time
from ottla.schemas import AvroDeserializer, AvroSerializer, Schema, SchemaReference

ORDER = json.dumps({"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]})
seen = []

@pytest.mark.parametrize("round", range(3))
def test_it(round, ottla_registry, ottla_topic, ottla_producer):
    client = ottla_registry.client
    assert client.get_subjects() == []
    seen.append(ottla_registry.url)
    serialize = AvroSerializer(client, ORDER)
    ottla_producer.send(ottla_topic, serialize({"id": round}, context(ottla_topic)))
    client.set_compatibility(level="NONE")

def context(topic):
    from ottla.schemas import MessageField, SerializationContext
    return SerializationContext(topic, MessageField.VALUE)

def test_references_are_deleted_too(ottla_registry):
    client = ottla_registry.client
    client.register_schema("a", Schema(ORDER))
    user = '{"type": "record", "name": "User", "fields": [{"name": "order", "type": "Order"}]}'
    client.register_schema("b", Schema(user, references=[SchemaReference("Order", "a", 1)]))

def test_after(ottla_registry):
    assert len(set(seen)) == 1
    assert ottla_registry.client.get_compatibility() == "BACKWARD"
    assert ottla_registry.client.get_subjects(deleted=True) == []

def test_it_is_quick(ottla_registry):
    ottla_registry.client.register_schema("orders-value", Schema(ORDER))
    started = time.perf_counter()
    ottla_registry.clear()
    assert time.perf_counter() - started < 1
"""


def test_each_test_has_an_empty_registry(pytester: pytest.Pytester) -> None:
    run(pytester, USES).assert_outcomes(passed=6)


def test_a_registry_that_does_not_start_is_an_error_with_the_reason() -> None:
    settings = {"bootstrap.servers": f"127.0.0.1:{free_port()}", "default.api.timeout.ms": 200}

    with (
        pytest.raises(IllegalStateError, match=r"the schema registry did not start: no Kafka broker"),
        TestedRegistry(settings),
    ):
        pass

    assert "ottla-tested-registry" not in [thread.name for thread in threading.enumerate()]
