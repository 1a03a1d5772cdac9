"""DescribeCluster: the one broker that the cluster has."""

from __future__ import annotations

from ottla.broker.handlers.metadata import cluster_operations
from ottla.broker.node import BrokerNode
from ottla.broker.requests.call import Call
from ottla.errors import ErrorCode
from ottla.protocol.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from ottla.protocol.messages.metadata import NO_OPERATIONS

BROKERS, CONTROLLERS = 1, 2
"""Kinds of endpoints that may be asked for."""


def handle(node: BrokerNode, call: Call, request: DescribeClusterRequest) -> DescribeClusterResponse:
    """Controllers are asked on a listener of their own, which this broker does not need."""
    kind = request.endpoint_type
    if kind != BROKERS:
        return refused(kind)
    host, port = node.address_for(call.connection)
    return DescribeClusterResponse(
        cluster_id=node.cluster_id,
        controller_id=node.config.node_id,
        brokers=[DescribeClusterBroker(node.config.node_id, host, port)],
        cluster_authorized_operations=(
            cluster_operations(node, call) if request.include_cluster_authorized_operations else NO_OPERATIONS
        ),
    )


def refused(kind: int) -> DescribeClusterResponse:
    """The answer to who wants anything but brokers."""
    if kind != CONTROLLERS:
        code, message = ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, f"Unsupported endpoint type {kind}"
    else:
        code = ErrorCode.MISMATCHED_ENDPOINT_TYPE
        message = (
            "this address belongs to a broker, not to a controller: ask with the bootstrap servers, not the controllers"
        )
    return DescribeClusterResponse(error_code=code, error_message=message)
