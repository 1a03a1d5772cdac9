"""Asks a broker which metrics it wants, and sends them: a part of `NetworkClient`, and as cheap as can be where nobody wants any.

No connection is opened for it, unless somebody waits for the client's id. It stays with one broker as long as that can be sent
to, since what a client tells is added up where it is told.
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
"""Of GetTelemetrySubscriptions: a broker that has it takes metrics."""
PAUSE = 300.0
"""Seconds after which a broker that did not take metrics is looked at again."""
LAST_PUSH_SECONDS = 0.1
"""How long the end of a client waits for its last push, as in Java."""
Take = Callable[["NetworkClient"], "ClientMetrics"]
Labels = Callable[[], Mapping[str, str]]


class TelemetrySender:
    def __init__(self, random: Random) -> None:
        self._random = random
        self._due = FOREVER
        self._take: Take | None = None
        self._labels: Labels = dict
        self._telemetry: ClientTelemetry | None = None
        self.node_id: int | None = None
        """Whom it tells."""
        self._is_awaited = False
        self._is_refused = False

    def begin(self, take: Take, labels: Labels = dict) -> None:
        """From now on push what `take` returns; `labels` are those of the client, by the names of KIP-714."""
        self._take, self._labels, self._due = take, labels, -FOREVER

    def maybe_push(self, client: NetworkClient, now: float) -> float:
        """Ask or push where that is due and a broker can be sent to; returns the seconds after which to look again."""
        if now < self._due:
            return self._due - now
        node_id = self._ready_node(client, now)
        if node_id is None:
            return FOREVER  # until a connection is ready, which ends the wait
        versions = client.api_versions.get(node_id)
        self._is_refused = versions is None or versions.newest(SUBSCRIPTIONS_KEY) is None
        if self._is_refused:
            self._due, self.node_id = now + PAUSE, None
            if self._is_awaited:
                client.wakeup()  # who waits in this poll is told at once
        else:
            self._send(client, node_id, now)
        return self._due - now

    def reset(self, now: float) -> None:
        """Take the request under way, if there is one, as not answered."""
        self.node_id = None
        if self._telemetry is not None:
            self._telemetry.answered(None, now, self._random.random())
            self._due = self._telemetry.due

    def terminate(self, client: NetworkClient, deadline: float = FOREVER) -> Steps[None]:
        """Push for the last time, where anybody wants it; waits for the answer, but not for long."""
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
                return  # what keeps us from brokers is told to who waits for something

    def client_instance_id(self, client: NetworkClient, span: float) -> Steps[UUID]:
        """The id that a broker has given to this client, asked for within `span` seconds."""
        if self._take is None:
            raise IllegalStateError("enable.metrics.push = false: a client that pushes no metrics has no instance id")
        deadline = client.clock.monotonic() + span
        self._is_refused, self._is_awaited = False, True
        if self._telemetry is None:
            self._due = -FOREVER
            client.wakeup()
        while self._telemetry is None or self._telemetry.client_instance_id is None:
            if self._is_refused:
                raise UnsupportedVersionError(
                    "the broker takes no metrics of clients, and so gives them no ids (KIP-714)"
                )
            left = deadline - client.clock.monotonic()
            if left <= 0:
                raise KafkaTimeoutError(f"no broker gave this client an id within {span:g} s: {client.trouble()}")
            yield left
        return self._telemetry.client_instance_id

    def _ready_node(self, client: NetworkClient, now: float) -> int | None:
        """The one of the last time, or who is least busy of those that can be sent to."""
        if self.node_id is not None and client.is_ready(self.node_id, now):
            return self.node_id
        self.node_id = None
        node = client.least_loaded_node(now) if client.metadata.version else None
        if node is not None and (client.ready(node, now) if self._is_awaited else client.is_ready(node.node_id, now)):
            self.node_id = node.node_id
        return self.node_id

    def _send(self, client: NetworkClient, node_id: int, now: float) -> None:
        telemetry = self._telemetry
        if telemetry is None:
            from ottla.client.telemetry.client_telemetry import ClientTelemetry

            telemetry = self._telemetry = ClientTelemetry(now, client.clock.wall_ms())
        assert self._take is not None, "it has begun"
        take = self._take
        try:
            message = telemetry.next_request(now, client.clock.wall_ms(), lambda: take(client), self._labels)
        except Exception:
            LOG.exception("no more metrics are pushed, since they could not be taken or written")
            self._telemetry, self._due = None, FOREVER
            return  # whoever polls is there for something else
        self._due = telemetry.due
        if message is not None:
            client.send_internal(node_id, message, 0, self._handle, now)

    def _handle(self, response: ClientResponse) -> None:
        assert self._telemetry is not None, "it has asked"
        self._is_awaited = False
        self._telemetry.answered(response.message, response.received, self._random.random())
        self._due = self._telemetry.due
