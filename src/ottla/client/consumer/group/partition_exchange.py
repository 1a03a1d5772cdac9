"""Partitions revoked and assigned in a rebalance: offsets are committed first, then the listener is called.

Runs in the user's thread. A step that cannot end at once, a commit or a coroutine of the listener, is stored as a
`ListenerCall`. There is at most one, and the rebalance continues only after it has ended.

Buffered records of a revoked partition are never returned. `commit_first` marks the partition as revoking, so that
`Fetcher` keeps its records in the queue while the commit, which does not include them, is in flight. `revoke` then
removes the partition and its position, and the fetcher drops the records. The partitions that stay assigned keep their
positions and their buffered records.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable
from functools import partial
from typing import Any

from msgspec import Struct

from ottla.client.consumer import events
from ottla.client.consumer.consumer_network_client import ConsumerNetworkClient
from ottla.client.consumer.group.membership.retry import RetryTimer
from ottla.client.consumer.group.rebalance_listener import Callback, RebalanceListener
from ottla.client.consumer.offsets.auto_commit import AutoCommit
from ottla.client.consumer.offsets.commits import is_retriable
from ottla.client.consumer.subscription_state import SubscriptionState
from ottla.client.metrics.sensor import Sensor
from ottla.client.runtime.future import Future
from ottla.client.runtime.steps import Steps
from ottla.errors import ErrorCode, KafkaError
from ottla.model import FOREVER, OffsetAndMetadata, TopicPartition
from ottla.trace import EventStream

NO_TOPIC = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID})
LOST = "all partitions are lost: the generation or the member id is no longer valid"


class ListenerCall(Struct):
    """A commit or a coroutine of the listener that a rebalance waits for, and the function to call after it.

    Partitions are given up only once their offsets are committed.
    """

    waits_for: Future[None]
    then: Callable[[], None]
    deadline: float = FOREVER
    is_listener_running: bool = False
    """True if the wait is for the listener. Until it has ended, no record is fetched or returned."""

    def is_due(self, now: float) -> bool:
        """Return True if the wait is over."""
        return self.waits_for.done() or now >= self.deadline


class PartitionExchange:
    """Gives up and receives partitions, one step after the other."""

    def __init__(
        self,
        client: ConsumerNetworkClient,
        subscriptions: SubscriptionState,
        auto_commit: AutoCommit,
        max_poll_interval_ms: int,
        stream: EventStream,
        log: logging.LoggerAdapter[Any],
    ) -> None:
        self.listener: RebalanceListener = RebalanceListener()
        self._client = client
        self._subscriptions = subscriptions
        self._auto_commit = auto_commit
        self._patience = max_poll_interval_ms / 1000
        self._events = stream
        self._log = log
        self._handover: ListenerCall | None = None
        self.listener_times = {name: Sensor() for name in ("assigned", "revoked", "lost")}
        """The seconds that calls of the listener took; for a coroutine, until its end."""

    @property
    def is_waiting(self) -> bool:
        """True while a `ListenerCall` is pending."""
        return self._handover is not None

    @property
    def is_listener_running(self) -> bool:
        """True while a coroutine of the listener runs."""
        return self._handover is not None and self._handover.is_listener_running

    def wait_span(self, now: float) -> float:
        """Return the seconds until the deadline of the pending `ListenerCall`."""
        return FOREVER if self._handover is None else self._handover.deadline - now

    def resume(self, now: float) -> bool:
        """Continue after waits that are over; return False while one is pending."""
        while self._handover is not None:
            if not self._handover.is_due(now):
                return False
            handover, self._handover = self._handover, None
            handover.then()
        return True

    def abandon(self) -> None:
        """Drop the pending `ListenerCall`."""
        self._handover = None

    def consumed(self, among: Collection[TopicPartition] | None = None) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return the offsets to commit before these partitions are revoked; none if auto-commit is disabled."""
        if not self._auto_commit.enabled:
            return {}
        consumed = self._subscriptions.consumed_offsets()
        return {tp: at for tp, at in consumed.items() if among is None or tp in among}

    def commit_first(
        self,
        gone: Iterable[TopicPartition],
        offsets: dict[TopicPartition, OffsetAndMetadata],
        now: float,
        then: Callable[[], None],
        retry: RetryTimer | None = None,
    ) -> None:
        """Commit `offsets` before the partitions `gone` are revoked, and call `then` after the result or a timeout.

        From now on no records of these partitions are returned. With `retry`, a commit with a retriable error is
        repeated without limit. Otherwise a delayed commit could be stored after other members have received the
        partitions.
        """
        self._subscriptions.mark_revoking(gone)
        self._commit(offsets, now + self._patience if retry is None else FOREVER, then, retry)

    def _commit(
        self,
        offsets: dict[TopicPartition, OffsetAndMetadata],
        deadline: float,
        then: Callable[[], None],
        retry: RetryTimer | None,
    ) -> None:
        commit = self._auto_commit.commit(offsets)

        def resume() -> None:
            error = commit.exception(0) if commit.done() else None
            if retry is None or error is None or is_unknown_topic(error) or not is_retriable(error):
                then()
            else:
                at = retry.record_failure(self._client.client.clock.monotonic())
                self._handover = ListenerCall(Future(), partial(self._commit, offsets, deadline, then, retry), at)

        self._handover = ListenerCall(commit, resume, deadline)
        if commit.done():
            self._handover = None
            resume()

    def revoke(self, gone: list[TopicPartition], *, lost: bool, then: Callable[[], None]) -> None:
        """Call the listener, remove the partitions even if it fails, and call `then`."""

        def resume() -> None:
            self._subscriptions.assign([tp for tp in self._subscriptions.assigned() if tp not in set(gone)])
            then()

        if not gone:
            resume()
        elif lost:
            self._log.info(LOST)
            self._log.info("Lost previously assigned partitions %s", format_partitions(gone))
            self._events.publish(events.Lost(tuple(sorted(gone))))
            self._call_listener("lost", self.listener.on_partitions_lost, gone, resume)
        else:
            self._log.info("revoking partitions %s", format_partitions(gone))
            self._events.publish(events.Revoked(tuple(sorted(gone))))
            self._call_listener("revoked", self.listener.on_partitions_revoked, gone, resume)

    def assign(self, given: Collection[TopicPartition], added: list[TopicPartition], then: Callable[[], None]) -> None:
        """Set the assignment, call the listener with the new partitions, and call `then`."""
        self._subscriptions.assign(given)
        self._log.info("newly assigned: %s", ", ".join(map(str, added)))
        self._events.publish(events.Assigned(tuple(sorted(given)), tuple(added)))
        self._call_listener("assigned", self.listener.on_partitions_assigned, added, then)

    def wait_for_listener(self, until: float) -> Steps[None]:
        """Wait for a coroutine of the listener."""
        while (handover := self._handover) is not None and handover.is_listener_running:
            if not (yield from self._client.wait_until(handover.waits_for.done, until)):
                return
            self._handover = None
            handover.then()

    def _call_listener(
        self, what: str, method: Callback, partitions: Iterable[TopicPartition], then: Callable[[], None]
    ) -> None:
        """Call the listener, and call `then` when it has returned or failed; for a coroutine, when that has ended."""
        response_events: Any = None
        monotonic, sensor = self._client.client.clock.monotonic, self.listener_times[what]
        began = monotonic()
        try:
            response_events = method(sorted(partitions))
        finally:
            if not isinstance(response_events, Future):
                sensor.record(monotonic() - began)
                then()
        if isinstance(response_events, Future):
            response_events.add_done_callback(lambda _: sensor.record(monotonic() - began))
            self._handover = ListenerCall(
                response_events, partial(continue_after, response_events, then), is_listener_running=True
            )


def continue_after(response_events: Future[None], then: Callable[[], None]) -> None:
    """Call `then`, and raise the listener's error afterwards."""
    then()
    error = response_events.exception(0)
    if error is not None:
        raise error


def is_unknown_topic(error: Exception) -> bool:
    """Return True if a commit failed because its topic was deleted; offsets of other topics are committed by then."""
    return isinstance(error, KafkaError) and error.code in NO_TOPIC


def do_nothing() -> None:
    """Do nothing."""


def format_partitions(partitions: Iterable[TopicPartition]) -> str:
    """Return partitions as Kafka's logs show them."""
    return f"[{', '.join(map(str, sorted(partitions)))}]"


def describe_change(given: Iterable[TopicPartition], owned: Iterable[TopicPartition]) -> str:
    """Return the four lines of Kafka's log after a rebalance."""
    now, before = set(given), set(owned)
    return (
        f"\tAssigned partitions:                       {format_partitions(now)}\n"
        f"\tCurrent owned partitions:                  {format_partitions(before)}\n"
        f"\tAdded partitions (assigned - owned):       {format_partitions(now - before)}\n"
        f"\tRevoked partitions (owned - assigned):     {format_partitions(before - now)}"
    )
