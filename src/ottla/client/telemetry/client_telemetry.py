"""What a client asks and tells brokers of its metrics, and what it makes of their answers; it knows no connection and no clock."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from uuid import UUID

from ottla.client.metrics.client_metrics import ClientMetrics
from ottla.client.telemetry.metric_points import Number, Sums, numbers_of
from ottla.client.telemetry.telemetry_machine import Subscription, TelemetryMachine, TelemetryState
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
        self._sums = Sums(wall_ms * 1_000_000)
        self._compression = Codec.NONE
        """Of the push that is under way."""
        self._is_too_much = False

    @property
    def due(self) -> float:
        """When there is something to send."""
        return self._machine.due

    @property
    def client_instance_id(self) -> UUID | None:
        return self._machine.client_instance_id

    @property
    def is_over(self) -> bool:
        """Whether nothing will be sent any more."""
        return self._machine.state is TelemetryState.TERMINATED

    def next_request(
        self, now: float, wall_ms: int, take: Callable[[], ClientMetrics], labels: Callable[[], Mapping[str, str]]
    ) -> Request | None:
        """What to send now; None where nothing is due."""
        state = self._machine.begin(now)
        if state is None:
            return None
        if state is TelemetryState.SUBSCRIPTION_NEEDED:
            return GetTelemetrySubscriptionsRequest(self.client_instance_id or ZERO_UUID)
        subscription = self._machine.subscription
        assert subscription is not None, "check() says so"
        assert self.client_instance_id is not None, "it came with the subscription"
        numbers = list(numbers_of(take(), subscription.wants))
        metrics = self._written(numbers, wall_ms * 1_000_000, labels(), subscription)
        return PushTelemetryRequest(
            self.client_instance_id,
            subscription.subscription_id,
            terminating=state is TelemetryState.TERMINATING_PUSH_NEEDED,
            compression_type=self._compression,
            metrics=metrics,
        )

    def answered(self, message: object, now: float, chance: float) -> None:
        """What a broker says, None where the connection was lost; `chance` is from 0 to 1."""
        if isinstance(message, GetTelemetrySubscriptionsResponse) and not self.is_over:
            self._machine.subscribed(message, now, chance)
            self._complain(message.error_code)
        elif isinstance(message, PushTelemetryResponse) and not self.is_over:
            if not message.error_code:
                self._sums.taken()
            self._machine.pushed(message.error_code, now, self._compression)
            self._complain(message.error_code)
        elif not self.is_over:
            self._machine.unanswered(now)

    def close(self, now: float) -> None:
        """The client ends."""
        if not self.is_over:
            self._machine.close(now)

    def _written(
        self, numbers: list[Number], now_ns: int, labels: Mapping[str, str], subscription: Subscription
    ) -> bytes:
        """As OpenTelemetry writes it; where that is more than the broker takes, without what is told by topic, node and the like."""
        refused = self._machine.refused_compressions
        usable = [Codec(each) for each in subscription.compressions if 0 <= each <= Codec.ZSTD and each not in refused]
        self._compression = usable[0] if usable else Codec.NONE
        for some in (numbers, [each for each in numbers if not each.series[1]]):
            points = self._sums.points(some, now_ns, is_delta=subscription.is_delta)
            data = write_metrics(points, labels)
            if len(data) <= subscription.max_bytes:
                return compress(self._compression, data)
            self._note_excess(len(some), len(data), subscription.max_bytes)
        self._sums.points([], now_ns, is_delta=subscription.is_delta)
        return b""

    def _note_excess(self, count: int, size_bytes: int, most: int) -> None:
        """Once."""
        if not self._is_too_much:
            self._is_too_much = True
            what = "what is told by topic and node is left out"
            LOG.warning("%d metrics are %d bytes, and telemetry.max.bytes = %d: %s", count, size_bytes, most, what)

    def _complain(self, error_code: int) -> None:
        if error_code and self.is_over and not self._machine.is_closing:
            LOG.warning("no more metrics are pushed: the broker answered %s", name_of(error_code))
