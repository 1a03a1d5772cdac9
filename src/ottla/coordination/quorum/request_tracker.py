"""The requests in flight: at most one per node.

Each request has a number. A response with the number of an earlier request is late and is ignored.
"""

from __future__ import annotations

from typing import NamedTuple

from ottla.coordination.quorum.config import QuorumConfig


class _InFlight(NamedTuple):
    number: int
    deadline: float


class RequestTracker:
    """The request in flight to each node, and the backoff of each node after a failure."""

    def __init__(self, config: QuorumConfig) -> None:
        self._timeout_seconds = config.request_timeout_ms / 1000
        self._backoff_seconds = config.retry_backoff_ms / 1000
        self._in_flight: dict[int, _InFlight] = {}
        self._not_before: dict[int, float] = {}
        self._number = 0

    def reset(self) -> None:
        """Ignore the responses to all requests sent so far, and end every backoff."""
        self._in_flight.clear()
        self._not_before.clear()

    def is_ready(self, node: int, now: float) -> bool:
        """Return True if no request to the node is in flight and its backoff is over."""
        in_flight = self._in_flight.get(node)
        return self._not_before.get(node, now) <= now and (in_flight is None or in_flight.deadline <= now)

    @property
    def is_waiting(self) -> bool:
        """True if a request to any node is in flight."""
        return bool(self._in_flight)

    def start_request(self, node: int, now: float) -> int:
        """Register a request that is sent to the node now; return its number."""
        self._number += 1
        self._in_flight[node] = _InFlight(self._number, now + self._timeout_seconds)
        return self._number

    def finish_request(self, node: int, number: int) -> bool:
        """Remove the request in flight to the node. Return False if it has another number: then the response is ignored."""
        in_flight = self._in_flight.get(node)
        if in_flight is None or in_flight.number != number:
            return False
        del self._in_flight[node]
        return True

    def back_off(self, node: int, now: float) -> None:
        """Send nothing to the node for `retry_backoff_ms`."""
        self._not_before[node] = now + self._backoff_seconds

    def expire(self, now: float) -> list[int]:
        """Remove the requests that have timed out, start a backoff for their nodes, and return these nodes."""
        late = [node for node, in_flight in self._in_flight.items() if in_flight.deadline <= now]
        for node in late:
            del self._in_flight[node]
            self.back_off(node, now)
        return late

    def wake_at(self, now: float) -> float:
        """Return the next moment at which a request times out or a backoff ends."""
        moments = [each.deadline for each in self._in_flight.values()]
        moments += [moment for moment in self._not_before.values() if moment > now]
        return min(moments, default=float("inf"))
