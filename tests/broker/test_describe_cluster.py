"""DescribeCluster: the truth about one broker."""

from __future__ import annotations

import pytest
from confluent_kafka.admin import AdminClient

from ottla.broker.embedding.embedded_broker import Broker
from ottla.errors import ErrorCode
from ottla.protocol.messages.describe_cluster import DescribeClusterRequest
from ottla.protocol.messages.metadata import NO_OPERATIONS
from tests.broker.wire import Wire


@pytest.mark.parametrize("version", range(3))
def test_a_single_broker_describes_itself_as_the_cluster(broker: Broker, wire: Wire, version: int) -> None:
    response = wire.ask(DescribeClusterRequest(), version)
    assert response.error_code == 0
    assert response.cluster_id == wire.metadata().cluster_id
    (only,) = response.brokers
    assert (only.broker_id, f"{only.host}:{only.port}") == (response.controller_id, broker.bootstrap_servers)
    assert response.cluster_authorized_operations == NO_OPERATIONS


def test_authorized_operations_are_returned_if_requested(wire: Wire) -> None:
    response = wire.ask(DescribeClusterRequest(include_cluster_authorized_operations=True))
    assert response.cluster_authorized_operations > 0


@pytest.mark.parametrize(
    ("kind", "error"), [(2, ErrorCode.MISMATCHED_ENDPOINT_TYPE), (3, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE)]
)
def test_controllers_are_not_described_on_a_broker_listener(wire: Wire, kind: int, error: int) -> None:
    response = wire.ask(DescribeClusterRequest(endpoint_type=kind))
    assert (response.error_code, response.brokers) == (error, [])


def test_confluents_admin_client_describes_the_cluster(broker: Broker) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    cluster = admin.describe_cluster(request_timeout=20).result(20)
    assert [f"{node.host}:{node.port}" for node in cluster.nodes] == [broker.bootstrap_servers]
    assert cluster.controller.id == 1
