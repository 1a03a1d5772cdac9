"""DescribeCluster: the brokers of the cluster."""

from __future__ import annotations

from ottla.broker.apis.metadata import cluster_operations
from ottla.broker.network_server.call import Call
from ottla.broker.node import BrokerNode
from ottla.errors import ErrorCode
from ottla.protocol.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from ottla.protocol.messages.metadata import NO_OPERATIONS

BROKERS, CONTROLLERS = 1, 2
"""The types of endpoints that can be requested."""


def handle(node: BrokerNode, call: Call, request: DescribeClusterRequest) -> DescribeClusterResponse:
    """Describe the brokers. Controllers are described on their own listeners."""
    kind = request.endpoint_type
    if kind != BROKERS:
        return build_error(kind)
    return DescribeClusterResponse(
        cluster_id=node.cluster_id,
        controller_id=node.config.node_id,
        brokers=list_brokers(node, call, fenced_too=request.include_fenced_brokers),
        cluster_authorized_operations=(
            cluster_operations(node, call) if request.include_cluster_authorized_operations else NO_OPERATIONS
        ),
    )


def list_brokers(node: BrokerNode, call: Call, *, fenced_too: bool) -> list[DescribeClusterBroker]:
    """Return the brokers of the cluster, on request with those that are fenced."""
    return [
        DescribeClusterBroker(each.node_id, *node.address_of(each, call.connection), each.rack, each.fenced)
        for each in node.brokers.reached_by(call.connection.listener)
        if fenced_too or not each.fenced
    ]


def build_error(kind: int) -> DescribeClusterResponse:
    """Return the response to a request for endpoints other than brokers."""
    if kind != CONTROLLERS:
        code, message = ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, f"Unsupported endpoint type {kind}"
    else:
        code = ErrorCode.MISMATCHED_ENDPOINT_TYPE
        message = "this address belongs to a broker, not to a controller: use bootstrap.servers instead of bootstrap.controllers"
    return DescribeClusterResponse(error_code=code, error_message=message)
