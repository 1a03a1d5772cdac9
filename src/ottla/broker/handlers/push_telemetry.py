"""PushTelemetry: what a client tells of itself, kept for whoever looks at this broker's metrics."""

from __future__ import annotations

from ottla.broker.node import BrokerNode
from ottla.broker.requests.call import Call
from ottla.protocol.messages.push_telemetry import PushTelemetryRequest, PushTelemetryResponse


def handle(node: BrokerNode, call: Call, request: PushTelemetryRequest) -> PushTelemetryResponse:
    """What becomes of it, `telemetry.py` knows."""
    return PushTelemetryResponse(error_code=node.telemetry.push(call, request, node.clock.monotonic()))
