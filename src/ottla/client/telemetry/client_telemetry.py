"""Build the telemetry requests of a client and interpret the responses. Pure: time and randomness are arguments."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from uuid import UUID

from ottla.client.metrics.client_metrics import ClientMetrics
from ottla.client.telemetry.metric_points import AcknowledgedSums, MetricValue, select_metrics
from ottla.client.telemetry.telemetry_machine import PushSubscription, TelemetryMachine, TelemetryState
from ottla.errors import name_of
from ottla.protocol.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)
from ottla.protocol.messages.push_telemetry import PushTelemetryRequest, PushTelemetryResponse
from ottla.protocol.metrics_data import write_metrics
from ottla.protocol.schema import ZERO_UUID
from ottla.records.compression import Codec, compress

LOG = logging.getLogger(__name__)
Request = GetTelemetrySubscriptionsRequest | PushTelemetryRequest


class ClientTelemetry:
    def __init__(self, now: float, wall_ms: int) -> None:
        self._machine = TelemetryMachine(now)
        self._sums = AcknowledgedSums(wall_ms * 1_000_000)
        self._compression = Codec.NONE
        """The codec of the push in progress."""
        self._has_logged_oversize = False

    @property
    def due(self) -> float:
        """The time at which the next request is due."""
        return self._machine.due

    @property
    def client_instance_id(self) -> UUID | None:
        return self._machine.client_instance_id

    @property
    def is_over(self) -> bool:
        """True after the last request; nothing is sent from then on."""
        return self._machine.state is TelemetryState.TERMINATED

    def next_request(
        self,
        now: float,
        wall_ms: int,
        collect_metrics: Callable[[], ClientMetrics],
        labels: Callable[[], Mapping[str, str]],
    ) -> Request | None:
        """Return the request to send now, or None if none is due."""
        state = self._machine.start_request(now)
        if state is None:
            return None
        if state is TelemetryState.SUBSCRIPTION_NEEDED:
            return GetTelemetrySubscriptionsRequest(self.client_instance_id or ZERO_UUID)
        subscription = self._machine.subscription
        assert subscription is not None, "a push needs a subscription"
        assert self.client_instance_id is not None, "the subscription response contains it"
        values = list(select_metrics(collect_metrics(), subscription.is_subscribed))
        metrics = self._encode(values, wall_ms * 1_000_000, labels(), subscription)
        return PushTelemetryRequest(
            self.client_instance_id,
            subscription.subscription_id,
            terminating=state is TelemetryState.TERMINATING_PUSH_NEEDED,
            compression_type=self._compression,
            metrics=metrics,
        )

    def handle_response(self, message: object, now: float, chance: float) -> None:
        """Handle a response. `message` is None after a disconnect; `chance` is a random number from 0 to 1."""
        if isinstance(message, GetTelemetrySubscriptionsResponse) and not self.is_over:
            self._machine.handle_subscription(message, now, chance)
            self._log_termination(message.error_code)
        elif isinstance(message, PushTelemetryResponse) and not self.is_over:
            if not message.error_code:
                self._sums.acknowledge()
            self._machine.handle_push_response(message.error_code, now, self._compression)
            self._log_termination(message.error_code)
        elif not self.is_over:
            self._machine.handle_disconnect(now)

    def close(self, now: float) -> None:
        """Start the shutdown of the client; a last push may become due."""
        if not self.is_over:
            self._machine.close(now)

    def _encode(
        self, values: list[MetricValue], now_ns: int, labels: Mapping[str, str], subscription: PushSubscription
    ) -> bytes:
        """Encode the metrics in OpenTelemetry's format and compress them.

        If the result exceeds `telemetry.max.bytes` of the subscription, only metrics without tags (such as topic or
        node) are pushed.
        """
        rejected = self._machine.rejected_codecs
        usable = [Codec(each) for each in subscription.compressions if 0 <= each <= Codec.ZSTD and each not in rejected]
        self._compression = usable[0] if usable else Codec.NONE
        for selected in (values, [each for each in values if not each.series[1]]):
            points = self._sums.points(selected, now_ns, is_delta=subscription.is_delta)
            data = write_metrics(points, labels)
            if len(data) <= subscription.max_bytes:
                return compress(self._compression, data)
            self._log_oversize(len(selected), len(data), subscription.max_bytes)
        self._sums.points([], now_ns, is_delta=subscription.is_delta)
        return b""

    def _log_oversize(self, count: int, size_bytes: int, limit: int) -> None:
        """Log the first payload that exceeds the limit."""
        if not self._has_logged_oversize:
            self._has_logged_oversize = True
            omitted = "metrics by topic and node are omitted"
            LOG.warning(
                "telemetry payload too large metrics=%d bytes=%d limit=%d: %s", count, size_bytes, limit, omitted
            )

    def _log_termination(self, error_code: int) -> None:
        if error_code and self.is_over and not self._machine.is_closing:
            LOG.warning("telemetry stopped after a broker error error=%s", name_of(error_code))
