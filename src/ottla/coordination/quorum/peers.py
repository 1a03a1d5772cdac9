"""Requests under way: one to a node at a time, each with a number, so that an answer to an older one is nobody's."""

from __future__ import annotations

from typing import NamedTuple

from ottla.coordination.quorum.config import QuorumConfig


class InFlight(NamedTuple):
    number: int
    deadline: float


class Peers:
    """Whom it is time to ask."""

    def __init__(self, config: QuorumConfig) -> None:
        self._timeout = config.request_timeout_ms / 1000
        self._backoff = config.retry_backoff_ms / 1000
        self._in_flight: dict[int, InFlight] = {}
        self._not_before: dict[int, float] = {}
        self._number = 0
        self.strangers: set[int] = set()
        """Those who have said that they are of another cluster, and nothing else since."""

    def reset(self) -> None:
        """What was asked under way does not matter any more."""
        self._in_flight.clear()
        self._not_before.clear()

    def is_ready(self, node: int, now: float) -> bool:
        under_way = self._in_flight.get(node)
        return self._not_before.get(node, now) <= now and (under_way is None or under_way.deadline <= now)

    @property
    def is_waiting(self) -> bool:
        """Whether an answer may still come."""
        return bool(self._in_flight)

    def ask(self, node: int, now: float) -> int:
        """The number of a request that is sent to it now."""
        self._number += 1
        self._in_flight[node] = InFlight(self._number, now + self._timeout)
        return self._number

    def answered(self, node: int, number: int) -> bool:
        """Whether this is the answer that is awaited."""
        under_way = self._in_flight.get(node)
        if under_way is None or under_way.number != number:
            return False
        del self._in_flight[node]
        return True

    def leave_alone(self, node: int, now: float) -> None:
        self._not_before[node] = now + self._backoff

    def expire(self, now: float) -> list[int]:
        """Those whose time to answer is over."""
        late = [node for node, under_way in self._in_flight.items() if under_way.deadline <= now]
        for node in late:
            del self._in_flight[node]
            self.leave_alone(node, now)
        return late

    def wake_at(self, now: float) -> float:
        """When somebody can be asked again."""
        moments = [each.deadline for each in self._in_flight.values()]
        moments += [moment for moment in self._not_before.values() if moment > now]
        return min(moments, default=float("inf"))
