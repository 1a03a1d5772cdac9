"""GetTelemetrySubscriptions: which of its metrics a client is to push, and how often."""

from __future__ import annotations

from ottla.broker.node import BrokerNode
from ottla.broker.requests.call import Call
from ottla.protocol.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)


def handle(
    node: BrokerNode, call: Call, request: GetTelemetrySubscriptionsRequest
) -> GetTelemetrySubscriptionsResponse:
    """Nothing, but in the answer's interval again, where nobody has subscribed to anything."""
    return node.telemetry.ask(call, request.client_instance_id, node.clock.monotonic())
