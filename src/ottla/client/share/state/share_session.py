"""The share session with one broker: which request comes next, and what its response changes (KIP-932). Pure.

A broker keeps one share session per member. The session has the partitions that the member fetches from this broker, and
an epoch that each request increments. A request with epoch 0 opens a session and replaces an older one; only ShareFetch
may do so, and it cannot carry acknowledgements. A request with epoch -1 closes the session. When a session ends, for any
reason, the broker releases all records that were acquired in it. Acknowledgements of a lost session are therefore failed
here and never sent in a later one.

One request per broker is in flight at a time. Waiting acknowledgements ride on the next ShareFetch; if nothing is to be
fetched, or a lock is to be renewed, they are sent by ShareAcknowledge.

    decide ─► SendFetch | SendAcknowledge ─► handle_fetch_response | handle_acknowledge_response | handle_failure
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from ottla.client.consumer.group.membership.retry import RetryTimer
from ottla.client.runtime.backoff import ExponentialBackoff
from ottla.client.share.state.acknowledgements import (
    Acknowledgements,
    AcknowledgeResult,
    ShareTopicPartition,
)
from ottla.errors import ErrorCode, KafkaError, error_for, name_of
from ottla.model import FOREVER

OPENING, CLOSING = 0, -1
"""Special session epochs."""
LAST_EPOCH = 2**31 - 1
LOST = "the share session ended before the acknowledgement was sent; the broker has released the records"
UNANSWERED = error_for(ErrorCode.INVALID_RECORD_STATE, "the response has no result for the acknowledgement")
LEADER_ERRORS = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
    }
)
"""Errors of acknowledgements that a retry at the same broker does not repair."""


class SendFetch(Struct, frozen=True):
    """Send ShareFetch."""

    epoch: int
    added: tuple[ShareTopicPartition, ...]
    """The partitions that the session does not have yet."""
    forgotten: tuple[ShareTopicPartition, ...]
    acknowledgements: tuple[Acknowledgements, ...]
    generation: int
    """Identifies the session; see `ShareSession.generation`."""


class SendAcknowledge(Struct, frozen=True):
    """Send ShareAcknowledge."""

    epoch: int
    acknowledgements: tuple[Acknowledgements, ...]
    renews: bool
    """True if the request renews acquisition locks."""


ShareRequest = SendFetch | SendAcknowledge


class ShareSessionHandler:
    """The session with one broker, and the acknowledgements that wait for it."""

    def __init__(self, node_id: int, backoff: ExponentialBackoff) -> None:
        self.node_id = node_id
        self.generation = 0
        """Incremented when the session is lost: records acquired in an earlier session are no longer acquired."""
        self.is_closed = False
        self._epoch = OPENING
        self._partitions: dict[ShareTopicPartition, None] = {}
        self._waiting: list[Acknowledgements] = []
        self._in_flight: ShareRequest | None = None
        self._results: list[AcknowledgeResult] = []
        self._retry = RetryTimer(backoff)

    @property
    def is_busy(self) -> bool:
        """True while a request is in flight."""
        return self._in_flight is not None

    @property
    def in_flight(self) -> ShareRequest | None:
        """The request without a result."""
        return self._in_flight

    @property
    def has_acknowledgements(self) -> bool:
        """True if acknowledgements wait for a request or a response."""
        return bool(self._waiting) or bool(self._in_flight is not None and self._in_flight.acknowledgements)

    @property
    def partitions(self) -> frozenset[ShareTopicPartition]:
        """The partitions of the session."""
        return frozenset(self._partitions)

    def time_to_retry(self, now: float) -> float:
        """Return the seconds until the next request is allowed; infinity while one is in flight."""
        return FOREVER if self.is_busy else max(0.0, self._retry.at - now)

    def add(self, acknowledgements: Acknowledgements, generation: int) -> None:
        """Queue acknowledgements of records that were acquired in the session `generation`."""
        if generation != self.generation or self._epoch == OPENING:
            self._fail(acknowledgements, error_for(ErrorCode.INVALID_SHARE_SESSION_EPOCH, LOST))
        else:
            self._waiting.append(acknowledgements)

    def decide(self, wanted: Iterable[ShareTopicPartition] | None, now: float) -> ShareRequest | None:
        """Return the next request: a fetch of the partitions `wanted`, or, with None, acknowledgements only."""
        if self.is_busy or self.is_closed or now < self._retry.at:
            return None
        partitions = dict.fromkeys(wanted or ())
        renews = any(each.renewals for each in self._waiting)
        if partitions and not renews and all(each.partition in partitions for each in self._waiting):
            self._in_flight = self._plan_fetch(partitions)
        elif self._waiting:
            self._in_flight = SendAcknowledge(self._epoch, self._take_waiting(), renews)
        return self._in_flight

    def decide_close(self) -> SendAcknowledge | None:
        """Return the last request, which closes the session; None if a request is in flight or there is no session."""
        if self.is_busy or self.is_closed:
            return None
        self.is_closed = True
        if self._epoch == OPENING:
            return None
        acknowledgements = self._take_waiting()
        renews = any(each.renewals for each in acknowledgements)
        request = SendAcknowledge(CLOSING, acknowledgements, renews)
        self._in_flight = request
        return request

    def handle_fetch_response(
        self,
        error_code: int,
        acknowledge_errors: Mapping[ShareTopicPartition, KafkaError | None],
        now: float,
        *,
        retry: bool,
    ) -> bool:
        """Handle the response to ShareFetch. Return False if it has no data, because the session is lost.

        `acknowledge_errors` has the result of the acknowledgements of each partition. `retry`: partitions have errors
        that should not be repeated at once.
        """
        return self._handle_response(error_code, acknowledge_errors, now, retry=retry)

    def handle_acknowledge_response(
        self, error_code: int, errors: Mapping[ShareTopicPartition, KafkaError | None], now: float
    ) -> bool:
        """Handle the response to ShareAcknowledge. Return False if the session is lost."""
        return self._handle_response(error_code, errors, now, retry=False)

    def handle_failure(self, error: Exception, now: float) -> None:
        """Handle a lost connection, or a request that could not be sent. The broker ends the session."""
        request = self._take_in_flight()
        for each in request.acknowledgements:
            self._fail(each, error)
        self._lose()
        self._retry.record_failure(now)

    def reset(self, error: Exception) -> None:
        """Forget the request in flight and start a new session, after an exception that interrupted a call."""
        if self._in_flight is not None:
            request, self._in_flight = self._in_flight, None
            for each in request.acknowledgements:
                self._fail(each, error)
        self._lose()

    def take_results(self) -> list[AcknowledgeResult]:
        """Return the results that were not taken yet."""
        results, self._results = self._results, []
        return results

    def check(self) -> None:
        """Assert the invariants."""
        assert OPENING <= self._epoch <= LAST_EPOCH
        if self._epoch == OPENING:
            assert not self._partitions or self.is_busy
            assert not self._waiting
        if isinstance(self._in_flight, SendFetch) and self._in_flight.epoch == OPENING:
            assert not self._in_flight.acknowledgements

    def _plan_fetch(self, wanted: dict[ShareTopicPartition, None]) -> SendFetch:
        added = tuple(each for each in wanted if each not in self._partitions)
        forgotten = tuple(each for each in self._partitions if each not in wanted)
        self._partitions = wanted
        return SendFetch(self._epoch, added, forgotten, self._take_waiting(), self.generation)

    def _take_waiting(self) -> tuple[Acknowledgements, ...]:
        waiting, self._waiting = self._waiting, []
        return tuple(waiting)

    def _take_in_flight(self) -> ShareRequest:
        request = self._in_flight
        assert request is not None
        self._in_flight = None
        return request

    def _handle_response(
        self, error_code: int, errors: Mapping[ShareTopicPartition, KafkaError | None], now: float, *, retry: bool
    ) -> bool:
        request = self._take_in_flight()
        if error_code:
            # After an error the epochs of both sides may differ; a new session makes them equal.
            for each in request.acknowledgements:
                self._fail(each, error_for(error_code, f"acknowledgement of {each.partition}: {name_of(error_code)}"))
            self._lose()
            self._retry.record_failure(now)
            return False
        if request.epoch == CLOSING:
            self._lose()
        else:
            self._epoch = 1 if request.epoch == LAST_EPOCH else request.epoch + 1
        has_retries = self._distribute(request.acknowledgements, errors, now)
        if retry or has_retries:
            self._retry.record_failure(now)
        else:
            self._retry.reset()
        return True

    def _distribute(
        self, sent: Sequence[Acknowledgements], errors: Mapping[ShareTopicPartition, KafkaError | None], now: float
    ) -> bool:
        """Complete the acknowledgements, or queue them again. Return True if some are retried."""
        retried = []
        for each in sent:
            error = errors.get(each.partition, UNANSWERED)
            can_retry = error is not None and error.retriable and error.code not in LEADER_ERRORS
            if can_retry and now < each.deadline and self._epoch != OPENING:
                retried.append(each)
            else:
                self._results.append(AcknowledgeResult(each, error))
        self._waiting[:0] = retried
        return bool(retried)

    def _fail(self, acknowledgements: Acknowledgements, error: Exception) -> None:
        self._results.append(AcknowledgeResult(acknowledgements, error))

    def _lose(self) -> None:
        """Start again without a session. The acquired records are no longer acquired."""
        self._epoch = OPENING
        self._partitions = {}
        self.generation += 1
        waiting, self._waiting = self._waiting, []
        for each in waiting:
            self._fail(each, error_for(ErrorCode.INVALID_SHARE_SESSION_EPOCH, LOST))
