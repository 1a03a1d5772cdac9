"""GetTelemetrySubscriptions: the metrics that a client should push, and the interval."""

from __future__ import annotations

from ottla.broker.network_server.call import Call
from ottla.broker.node import BrokerNode
from ottla.protocol.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)


def handle(
    node: BrokerNode, call: Call, request: GetTelemetrySubscriptionsRequest
) -> GetTelemetrySubscriptionsResponse:
    """Return the client's subscription: none, with an interval, if there are no matching ones."""
    return node.telemetry.handle_subscription_request(call, request.client_instance_id, node.clock.monotonic())
