"""The requests of a producer that wait for their turn or for an answer, and the coordinators they go to.

Pure. One is on its way at a time, the most urgent first; one that may be asked again stays until it is answered.
"""

from __future__ import annotations

from ottla.client.producer.transactions.find_coordinator import FindCoordinator
from ottla.client.producer.transactions.txn_request import TxnRequest, Verdict
from ottla.client.runtime.backoff import ExponentialBackoff
from ottla.errors import ErrorCode
from ottla.model import Node

SOON = 0.02
"""Seconds to wait when the last transaction is still being ended: it rarely takes longer."""


class TxnRequests:
    """What is to be asked."""

    def __init__(self, backoff: ExponentialBackoff) -> None:
        self.in_flight: TxnRequest | None = None
        self.coordinators: dict[tuple[int, str], Node] = {}
        self._backoff = backoff
        self._waiting: list[TxnRequest] = []

    def __contains__(self, request: TxnRequest) -> bool:
        return request in self._waiting

    def add(self, request: TxnRequest) -> None:
        """Ask this when its turn has come."""
        self._waiting.append(request)

    def remove(self, request: TxnRequest) -> None:
        """It has its answer, or nobody wants to know any more."""
        self._waiting.remove(request)

    def first(self) -> TxnRequest | None:
        return min(self._waiting, key=lambda request: request.PRIORITY, default=None)

    def coordinator_of(self, request: TxnRequest) -> Node | None:
        """Whom to send it to; None while that is being found out."""
        assert request.coordinator is not None
        node = self.coordinators.get(request.coordinator)
        if node is None and not any(isinstance(each, FindCoordinator) for each in self._waiting):
            self._waiting.append(FindCoordinator(*request.coordinator))
        return node

    def forget_coordinator(self, request: TxnRequest) -> None:
        """It is another broker now, or that one is gone."""
        if request.coordinator is not None:
            self.coordinators.pop(request.coordinator, None)

    def landed(self, request: TxnRequest) -> None:
        """It has an answer, or its connection has ended."""
        if self.in_flight is request:
            self.in_flight = None

    def postpone(self, request: TxnRequest, verdict: Verdict, code: int, now: float) -> None:
        """Ask again in a moment, perhaps somebody else."""
        if verdict is Verdict.REDISCOVER:
            self.forget_coordinator(request)
        request.attempts += 1
        hasty = code == ErrorCode.CONCURRENT_TRANSACTIONS
        request.retry_at = now + (SOON if hasty else self._backoff.span(request.attempts))

    def drop(self, error: Exception, *, aborting: bool) -> None:
        """Fail everybody who waits. What is on the wire stays in flight: nothing may overtake it.

        To abort, it must be known whether there is a transaction: what may have begun it is asked until it is answered.
        """
        dropped, self._waiting = self._waiting, []
        for request in dropped:
            request.outcome.settle(error)
            if aborting and request.JOINS and (request.attempts or request is self.in_flight):
                self._waiting.append(request)
