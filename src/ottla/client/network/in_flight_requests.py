"""Requests without a response yet, per broker, oldest first.

Pure. Kafka responds in the order of requests on a connection, so the next response is always for the oldest.
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
        """The time at which it was added to its connection's queue."""
        self.sent = False
        """True if its last byte was written to the socket."""

    def read(self, frame: memoryview) -> Any:
        """Decode the response; raise OttlaError if the frame is not the response to this request."""
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
        """Add a request that was queued on its connection."""
        self._by_node.setdefault(entry.request.node_id, deque()).append(entry)

    def complete_next(self, node_id: int) -> InFlightRequest | None:
        """Take the request of a received response; return None if there is no request."""
        queue = self._by_node.get(node_id)
        return queue.popleft() if queue else None

    def complete_sent(self, node_id: int) -> InFlightRequest | None:
        """Mark the oldest unsent request as sent; take and return it if no response is expected, otherwise return None."""
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
        """Return True if one more request may be sent before a response arrives."""
        return len(self._by_node.get(node_id, ())) < self._most

    def count(self, node_id: int | None = None) -> int:
        """Return the number of unanswered requests of one broker, or of all."""
        if node_id is not None:
            return len(self._by_node.get(node_id, ()))
        return sum(map(len, self._by_node.values()))

    def clear(self, node_id: int) -> list[InFlightRequest]:
        """Take all requests of a broker after the end of its connection."""
        return list(self._by_node.pop(node_id, ()))

    def find_expired(self, now: float) -> list[int]:
        """Return the brokers that have missed a request's deadline."""
        return [node for node, queue in self._by_node.items() if any(entry.deadline <= now for entry in queue)]

    def extend_deadlines(self, span: float) -> None:
        """Extend the deadlines after `span` seconds without a poll, if that was long: no broker caused that delay."""
        if span > 1.0:
            for entry in self:
                entry.deadline += span

    def next_deadline(self) -> float:
        """Return the first deadline; infinity if there is no request."""
        return min((entry.deadline for entry in self), default=FOREVER)

    def __iter__(self) -> Iterator[InFlightRequest]:
        for queue in self._by_node.values():
            yield from queue
