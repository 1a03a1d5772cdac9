"""PushTelemetry: metrics that a client pushes, kept for the metrics page."""

from __future__ import annotations

from ottla.broker.network_server.call import Call
from ottla.broker.node import BrokerNode
from ottla.protocol.messages.push_telemetry import PushTelemetryRequest, PushTelemetryResponse


def handle(node: BrokerNode, call: Call, request: PushTelemetryRequest) -> PushTelemetryResponse:
    """Store pushed metrics; see `broker/client_telemetry.py`."""
    return PushTelemetryResponse(error_code=node.telemetry.handle_push(call, request, node.clock.monotonic()))
