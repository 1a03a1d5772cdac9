"""GetTelemetrySubscriptions: the metrics that a client should push, and the interval (KIP-714)."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.protocol.schema import ZERO_UUID, Bool, Int8, Int16, Int32, Message, String, Uuid, message


@message(key=71, versions="0", flexible="0+")
class GetTelemetrySubscriptionsRequest(Message):
    client_instance_id: Uuid = ZERO_UUID
    """Zeros request a new id."""


@message(key=71, versions="0", flexible="0+")
class GetTelemetrySubscriptionsResponse(Message):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    client_instance_id: Uuid = ZERO_UUID
    subscription_id: Int32 = 0
    """Changes with the requested metrics."""
    accepted_compression_types: Sequence[Int8] = ()
    """Compression types, the preferred one first."""
    push_interval_ms: Int32 = 0
    telemetry_max_bytes: Int32 = 0
    delta_temporality: Bool = False
    """True to push sums as the growth since the last push."""
    requested_metrics: Sequence[String] = ()
    """Prefixes of metric names; an empty list requests none, and `*` or an empty prefix all."""
