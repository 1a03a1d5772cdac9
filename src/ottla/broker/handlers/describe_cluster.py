"""DescribeCluster: the brokers of the cluster, mostly this one alone."""

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
    return DescribeClusterResponse(
        cluster_id=node.cluster_id,
        controller_id=node.config.node_id,
        brokers=brokers_of(node, call, fenced_too=request.include_fenced_brokers),
        cluster_authorized_operations=(
            cluster_operations(node, call) if request.include_cluster_authorized_operations else NO_OPERATIONS
        ),
    )


def brokers_of(node: BrokerNode, call: Call, *, fenced_too: bool) -> list[DescribeClusterBroker]:
    """The one that is asked, or all of the cluster that the client wants to hear of."""
    if node.brokers is None:
        return [DescribeClusterBroker(node.config.node_id, *node.address_for(call.connection))]
    return [
        DescribeClusterBroker(each.node_id, each.host, each.port, each.rack, each.fenced)
        for each in node.brokers.reached_by(call.connection.listener)
        if fenced_too or not each.fenced
    ]


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
