"""PushTelemetry: push a client's metrics in OpenTelemetry's format (KIP-714)."""

from __future__ import annotations

from ottla.protocol.schema import ZERO_UUID, Bool, Bytes, Int8, Int16, Int32, Message, Uuid, message


@message(key=72, versions="0", flexible="0+")
class PushTelemetryRequest(Message):
    client_instance_id: Uuid = ZERO_UUID
    subscription_id: Int32 = 0
    terminating: Bool = False
    """True for the last push."""
    compression_type: Int8 = 0
    """The compression type, as of a record batch."""
    metrics: Bytes = b""
    """The metrics, as encoded by `metrics_data.py`."""


@message(key=72, versions="0", flexible="0+")
class PushTelemetryResponse(Message):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
