"""Requests that were sent and not answered yet, per broker, oldest first.

Pure. Kafka answers in the order of requests on a connection, so the oldest is always the next to be answered.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any

from ottla.client.network.client_request import ClientRequest
from ottla.errors import OttlaError
from ottla.model import FOREVER
from ottla.protocol.conversation import decode_response


class InFlightRequest:
    """One unanswered request."""

    __slots__ = ("api", "asked", "correlation_id", "deadline", "request", "sent", "version")

    def __init__(
        self, request: ClientRequest, api: Any, version: int, correlation_id: int, deadline: float, asked: float
    ) -> None:
        self.request = request
        self.api = api
        self.version = version
        self.correlation_id = correlation_id
        self.deadline = deadline
        self.asked = asked
        """When it was handed to its connection."""
        self.sent = False
        """Whether its last byte has left."""

    def read(self, frame: memoryview) -> Any:
        """The message of its answer; OttlaError where the frame is none."""
        correlation_id, message = decode_response(self.api.response, self.version, frame)
        if correlation_id != self.correlation_id:
            raise OttlaError(f"answer {correlation_id} came where {self.correlation_id} was due: not a Kafka broker")
        return message


class InFlightRequests:
    """The unanswered requests of all brokers."""

    def __init__(self, most_per_connection: int) -> None:
        self._most = most_per_connection
        self._by_node: dict[int, deque[InFlightRequest]] = {}

    def add(self, entry: InFlightRequest) -> None:
        """A request was handed to the connection."""
        self._by_node.setdefault(entry.request.node_id, deque()).append(entry)

    def complete_next(self, node_id: int) -> InFlightRequest | None:
        """Take the request that the answer just received belongs to; None when nothing was asked."""
        queue = self._by_node.get(node_id)
        return queue.popleft() if queue else None

    def complete_sent(self, node_id: int) -> InFlightRequest | None:
        """The oldest unsent frame has left: take it when no answer will come for it, else None."""
        queue = self._by_node.get(node_id, deque())
        for entry in queue:
            if not entry.sent:
                entry.sent = True
                if entry.request.expect_response:
                    return None
                queue.remove(entry)
                return entry
        return None

    def can_send_more(self, node_id: int) -> bool:
        """Whether one more request may go out before an answer comes."""
        return len(self._by_node.get(node_id, ())) < self._most

    def count(self, node_id: int | None = None) -> int:
        """Unanswered requests of one broker, or of all."""
        if node_id is not None:
            return len(self._by_node.get(node_id, ()))
        return sum(map(len, self._by_node.values()))

    def clear(self, node_id: int) -> list[InFlightRequest]:
        """Take all of a broker's requests: its connection is gone."""
        return list(self._by_node.pop(node_id, ()))

    def expired(self, now: float) -> list[int]:
        """Brokers that have let a request's deadline pass."""
        return [node for node, queue in self._by_node.items() if any(entry.deadline <= now for entry in queue)]

    def forgive(self, span: float) -> None:
        """Nobody listened for `span` seconds: that is not the brokers' fault."""
        if span > 1.0:
            for entry in self:
                entry.deadline += span

    def next_deadline(self) -> float:
        """The first moment at which a request will have waited too long; infinity when none waits."""
        return min((entry.deadline for entry in self), default=FOREVER)

    def __iter__(self) -> Iterator[InFlightRequest]:
        for queue in self._by_node.values():
            yield from queue
