"""Send telemetry requests from `NetworkClient.poll`.

The cost is one comparison per poll if no broker subscribes to metrics.

No connection is opened for telemetry, except while a caller waits for the client instance id. Requests are sent to the
same broker as long as it is reachable, because each broker aggregates the metrics that it receives.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from random import Random
from typing import TYPE_CHECKING
from uuid import UUID

from ottla.client.network.client_request import ClientResponse
from ottla.client.runtime.steps import Steps
from ottla.errors import IllegalStateError, KafkaTimeoutError, OttlaError, UnsupportedVersionError
from ottla.model import FOREVER

if TYPE_CHECKING:
    from ottla.client.metrics.client_metrics import ClientMetrics
    from ottla.client.network.network_client import NetworkClient
    from ottla.client.telemetry.client_telemetry import ClientTelemetry

LOG = logging.getLogger(__name__)
SUBSCRIPTIONS_KEY = 71
"""The key of GetTelemetrySubscriptions. A broker that announces it accepts metrics."""
PAUSE = 300.0
"""Seconds until a broker that does not accept metrics is checked again."""
LAST_PUSH_SECONDS = 0.1
"""The longest time in seconds that close waits for the last push, as in Java."""
CollectMetrics = Callable[["NetworkClient"], "ClientMetrics"]
Labels = Callable[[], Mapping[str, str]]


class TelemetrySender:
    def __init__(self, random: Random) -> None:
        self._random = random
        self._due = FOREVER
        self._collect_metrics: CollectMetrics | None = None
        self._labels: Labels = dict
        self._telemetry: ClientTelemetry | None = None
        self.node_id: int | None = None
        """The broker that the requests are sent to."""
        self._is_id_requested = False
        self._is_unsupported = False

    def enable(self, collect_metrics: CollectMetrics, labels: Labels = dict) -> None:
        """Enable pushing. `collect_metrics` returns the metrics, `labels` the labels of the client with the names of KIP-714."""
        self._collect_metrics, self._labels, self._due = collect_metrics, labels, -FOREVER

    def maybe_push(self, client: NetworkClient, now: float) -> float:
        """Send a request if one is due and a broker is ready. Return the seconds until the next call."""
        if now < self._due:
            return self._due - now
        node_id = self._ready_node(client, now)
        if node_id is None:
            return FOREVER  # a ready connection ends the wait
        versions = client.api_versions.get(node_id)
        self._is_unsupported = versions is None or versions.newest_version(SUBSCRIPTIONS_KEY) is None
        if self._is_unsupported:
            self._due, self.node_id = now + PAUSE, None
            if self._is_id_requested:
                client.wakeup()  # the waiting caller sees the refusal at once
        else:
            self._send(client, node_id, now)
        return self._due - now

    def reset(self, now: float) -> None:
        """Treat a request in progress as failed."""
        self.node_id = None
        if self._telemetry is not None:
            self._telemetry.handle_response(None, now, self._random.random())
            self._due = self._telemetry.due

    def terminate(self, client: NetworkClient, deadline: float = FOREVER) -> Steps[None]:
        """Push the last metrics if there is a subscription, and wait up to `LAST_PUSH_SECONDS` for the response."""
        telemetry, now = self._telemetry, client.clock.monotonic()
        if telemetry is None or client.closed or self._ready_node(client, now) is None:
            return
        telemetry.close(now)
        self._due = telemetry.due
        deadline = min(deadline, now + LAST_PUSH_SECONDS)
        while not telemetry.is_over and (left := deadline - client.clock.monotonic()) > 0:
            try:
                yield left
            except OttlaError:
                return  # connection errors are reported by the calls that need the connection

    def client_instance_id(self, client: NetworkClient, span: float) -> Steps[UUID]:
        """Return the id that a broker assigned to this client, requesting it within `span` seconds if needed."""
        if self._collect_metrics is None:
            raise IllegalStateError("no client instance id: enable.metrics.push = false; set it to true")
        deadline = client.clock.monotonic() + span
        self._is_unsupported, self._is_id_requested = False, True
        if self._telemetry is None:
            self._due = -FOREVER
            client.wakeup()
        while self._telemetry is None or self._telemetry.client_instance_id is None:
            if self._is_unsupported:
                raise UnsupportedVersionError(
                    "no client instance id: the broker does not accept client metrics (KIP-714)"
                )
            left = deadline - client.clock.monotonic()
            if left <= 0:
                raise KafkaTimeoutError(
                    f"no client instance id received within {span:g} s: {client.describe_trouble()}"
                )
            yield left
        return self._telemetry.client_instance_id

    def _ready_node(self, client: NetworkClient, now: float) -> int | None:
        """Return the broker of the last request if it is ready, else the least loaded broker."""
        if self.node_id is not None and client.is_ready(self.node_id, now):
            return self.node_id
        self.node_id = None
        node = client.least_loaded_node(now) if client.metadata.version else None
        if node is not None and (
            client.ready(node, now) if self._is_id_requested else client.is_ready(node.node_id, now)
        ):
            self.node_id = node.node_id
        return self.node_id

    def _send(self, client: NetworkClient, node_id: int, now: float) -> None:
        telemetry = self._telemetry
        if telemetry is None:
            from ottla.client.telemetry.client_telemetry import ClientTelemetry

            telemetry = self._telemetry = ClientTelemetry(now, client.clock.wall_ms())
        assert self._collect_metrics is not None, "begin() was called"
        collect_metrics = self._collect_metrics
        try:
            message = telemetry.next_request(now, client.clock.wall_ms(), lambda: collect_metrics(client), self._labels)
        except Exception:
            LOG.exception("telemetry stopped: the metrics could not be collected or encoded")
            self._telemetry, self._due = None, FOREVER
            return  # the poll continues with its other work
        self._due = telemetry.due
        if message is not None:
            client.send_internal(node_id, message, 0, self._handle_response, now)

    def _handle_response(self, response: ClientResponse) -> None:
        assert self._telemetry is not None, "a request was sent"
        self._is_id_requested = False
        self._telemetry.handle_response(response.message, response.received, self._random.random())
        self._due = self._telemetry.due
