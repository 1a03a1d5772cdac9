"""The queue of a transactional producer's requests, and the coordinators they are sent to.

Pure. One request is in flight at a time, the most urgent first; one that may be retried stays until its final response.
"""

from __future__ import annotations

from ottla.client.producer.transactions.requests import FindCoordinator, TxnRequest, Verdict
from ottla.client.runtime.backoff import ExponentialBackoff
from ottla.errors import ErrorCode
from ottla.model import Node

SOON = 0.02
"""Seconds to wait while the previous transaction is still being completed: it rarely takes longer."""


class TxnRequests:
    """Waiting requests by priority, and the one in flight."""

    def __init__(self, backoff: ExponentialBackoff) -> None:
        self.in_flight: TxnRequest | None = None
        self.coordinators: dict[tuple[int, str], Node] = {}
        self._backoff = backoff
        self._waiting: list[TxnRequest] = []

    def __contains__(self, request: TxnRequest) -> bool:
        return request in self._waiting

    def add(self, request: TxnRequest) -> None:
        """Send the request when it is the most urgent one."""
        self._waiting.append(request)

    def remove(self, request: TxnRequest) -> None:
        """Remove a request that is complete or no longer needed."""
        self._waiting.remove(request)

    def first_request(self) -> TxnRequest | None:
        return min(self._waiting, key=lambda request: request.PRIORITY, default=None)

    def find_coordinator(self, request: TxnRequest) -> Node | None:
        """Return the coordinator for a request; None while a FindCoordinator request is pending."""
        assert request.coordinator is not None
        node = self.coordinators.get(request.coordinator)
        if node is None and not any(isinstance(each, FindCoordinator) for each in self._waiting):
            self._waiting.append(FindCoordinator(*request.coordinator))
        return node

    def forget_coordinator(self, request: TxnRequest) -> None:
        """Forget the coordinator of a request: another broker may be it now."""
        if request.coordinator is not None:
            self.coordinators.pop(request.coordinator, None)

    def clear_in_flight(self, request: TxnRequest) -> None:
        """Record that the request has a response, or that its connection was lost."""
        if self.in_flight is request:
            self.in_flight = None

    def postpone_request(self, request: TxnRequest, verdict: Verdict, code: int, now: float) -> None:
        """Retry the request after a backoff, perhaps at another coordinator."""
        if verdict is Verdict.REDISCOVER:
            self.forget_coordinator(request)
        request.attempts += 1
        is_brief = code == ErrorCode.CONCURRENT_TRANSACTIONS
        request.retry_at = now + (SOON if is_brief else self._backoff.span(request.attempts))

    def drop_requests(self, error: Exception, *, aborting: bool) -> None:
        """Fail all waiting requests. A request in flight stays there, so that no later one overtakes it.

        An abort needs to know whether there is a transaction: a request that may have started it is retried.
        """
        dropped, self._waiting = self._waiting, []
        for request in dropped:
            request.outcome.set_result(error)
            if aborting and request.JOINS and (request.attempts or request is self.in_flight):
                self._waiting.append(request)
