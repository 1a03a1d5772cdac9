"""Metrics that clients push to this broker (KIP-714, decision 0099): read, and kept for the metrics page.

The shell around `coordination/telemetry`: it passes the current subscriptions, and decompresses.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from uuid import UUID, uuid4

from ottla.broker.network_server.call import Call
from ottla.broker.settings.config import BrokerConfig
from ottla.coordination.telemetry.instances import COMPRESSIONS, Instance, Instances
from ottla.coordination.telemetry.pushed_metrics import PushedMetrics
from ottla.coordination.telemetry.subscription import Client, TelemetrySubscription
from ottla.errors import CorruptRecordError, ErrorCode
from ottla.kafka_id import text_of
from ottla.model import Buffer
from ottla.protocol.errors import MalformedError
from ottla.protocol.messages.get_telemetry_subscriptions import GetTelemetrySubscriptionsResponse
from ottla.protocol.messages.push_telemetry import PushTelemetryRequest
from ottla.protocol.metrics_data import read_metrics
from ottla.protocol.schema import ZERO_UUID
from ottla.records.compression import Codec, DecompressedTooLargeError, decompress

log = logging.getLogger(__name__)


class TelemetryReceiver:
    def __init__(
        self, config: Callable[[], BrokerConfig], subscriptions: Callable[[], Mapping[str, Mapping[str, str]]]
    ) -> None:
        self._config = config
        self._wished = subscriptions
        self._known: Mapping[str, Mapping[str, str]] = {}
        self._instances = Instances()
        self._pushed = PushedMetrics()

    def handle_subscription_request(
        self, call: Call, instance_id: UUID, now: float
    ) -> GetTelemetrySubscriptionsResponse:
        """Return the subscription of a client: the metrics that it is to push."""
        self._expire(now)
        if instance_id == ZERO_UUID:
            instance_id = uuid4()
        found = self._instances.subscribe_client(instance_id, describe_client(call, instance_id), now)
        if not isinstance(found, Instance):
            return GetTelemetrySubscriptionsResponse(error_code=found)
        return GetTelemetrySubscriptionsResponse(
            client_instance_id=instance_id,
            subscription_id=found.subscription_id,
            accepted_compression_types=COMPRESSIONS,
            push_interval_ms=found.wanted.interval_ms,
            telemetry_max_bytes=self._config().telemetry_max_bytes,
            delta_temporality=True,
            requested_metrics=found.wanted.metrics,
        )

    def handle_push(self, call: Call, request: PushTelemetryRequest, now: float) -> int:
        """Keep the metrics that a client pushed. Return an error code, 0 for none."""
        self._expire(now)
        instance_id, most = request.client_instance_id, self._config().telemetry_max_bytes
        client = describe_client(call, instance_id)
        error = self._instances.push(
            instance_id,
            client,
            request.subscription_id,
            request.compression_type,
            len(request.metrics),
            most,
            now,
            terminating=request.terminating,
        )
        if not error and len(request.metrics):
            error = self._apply_push(instance_id, client, Codec(request.compression_type), request.metrics, most)
            self._instances.refuse(instance_id, error)
        return error

    def list_metrics(self, now: float) -> PushedMetrics:
        """Return the metrics of all clients that have not expired."""
        self._expire(now)
        return self._pushed

    def _apply_push(self, instance_id: UUID, client: Client, codec: Codec, data: Buffer, most: int) -> int:
        try:
            points = list(read_metrics(memoryview(decompress(codec, data, most))))
        except DecompressedTooLargeError:
            return ErrorCode.TELEMETRY_TOO_LARGE
        except (MalformedError, CorruptRecordError) as error:
            log.warning("metrics of %r (%s) cannot be read: %s", client.client_id, client.client_instance_id, error)
            return ErrorCode.INVALID_RECORD
        self._pushed.take(instance_id, client, points)
        return 0

    def _expire(self, now: float) -> None:
        """Apply changed subscriptions, and remove expired clients."""
        if self._wished() is not self._known:
            self._known = self._wished()
            self._instances.subscribe(TelemetrySubscription.of(configs) for configs in self._known.values())
        self._pushed.forget(self._instances.expire(now))


def describe_client(call: Call, instance_id: UUID) -> Client:
    """Return the client's attributes that subscriptions can match."""
    connection = call.connection
    host, port = connection.peer
    return Client(text_of(instance_id), call.header.client_id or "", *connection.software, host, str(port))
