"""GetTelemetrySubscriptions: which of its metrics a client is to push, and how often (KIP-714)."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.protocol.schema import ZERO_UUID, Bool, Int8, Int16, Int32, Message, String, Uuid, message


@message(key=71, versions="0", flexible="0+")
class GetTelemetrySubscriptionsRequest(Message):
    client_instance_id: Uuid = ZERO_UUID
    """Zeros ask for one."""


@message(key=71, versions="0", flexible="0+")
class GetTelemetrySubscriptionsResponse(Message):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    client_instance_id: Uuid = ZERO_UUID
    subscription_id: Int32 = 0
    """Another one as soon as something else is asked for."""
    accepted_compression_types: Sequence[Int8] = ()
    """The preferred one first."""
    push_interval_ms: Int32 = 0
    telemetry_max_bytes: Int32 = 0
    delta_temporality: Bool = False
    """Whether sums are to be told as what came since the last push."""
    requested_metrics: Sequence[String] = ()
    """How names begin; none asks for nothing, and `*`, or an empty one, for everything."""
