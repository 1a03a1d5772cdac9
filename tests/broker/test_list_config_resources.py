"""ListConfigResources: resources with configs by type."""

from __future__ import annotations

import kafka.admin

from ottla.broker.embedding.embedded_broker import Broker
from ottla.errors import ErrorCode
from ottla.protocol.messages.list_config_resources import ListConfigResourcesRequest
from tests.broker.wire import Wire

TOPIC, BROKER, LOGGER, CLIENT_METRICS = 2, 4, 8, 16


def listed(wire: Wire, *types: int) -> set[tuple[int, str]]:
    response = wire.ask(ListConfigResourcesRequest(types))
    assert response.error_code == 0
    return {(resource.resource_type, resource.resource_name) for resource in response.config_resources}


def test_resources_are_listed_by_type(wire: Wire) -> None:
    wire.create("t")
    wire.create("u")
    assert listed(wire, TOPIC) == {(TOPIC, "t"), (TOPIC, "u")}
    assert listed(wire, BROKER, CLIENT_METRICS) == {(BROKER, "1")}
    assert listed(wire) == {(TOPIC, "t"), (TOPIC, "u"), (BROKER, "1"), (LOGGER, "1")}


def test_an_unsupported_resource_type_is_rejected(wire: Wire) -> None:
    assert wire.ask(ListConfigResourcesRequest([TOPIC, 64])).error_code == ErrorCode.UNSUPPORTED_VERSION


def test_version_0_lists_client_metrics_and_there_are_none(wire: Wire) -> None:
    wire.create("t")
    response = wire.ask(ListConfigResourcesRequest(), 0)
    assert (response.error_code, response.config_resources) == (0, [])


def test_kafka_pythons_admin_client_lists_resources(broker: Broker, wire: Wire) -> None:
    wire.create("t")
    admin = kafka.admin.KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
    found = admin.list_config_resources(["TOPIC"])
    admin.close()
    assert found == {"topic": ["t"]}
