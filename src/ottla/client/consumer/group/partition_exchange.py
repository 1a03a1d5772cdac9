"""Partitions that go and come in a rebalance: first offsets are committed, then the listener is told.

In the user's thread. What waits, for a commit or for a coroutine of the listener, is a `Handover`; at most one is under
way, and nothing else of a rebalance happens before it has ended.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable
from functools import partial
from typing import Any

from ottla.client.consumer import events
from ottla.client.consumer.consumer_network_client import ConsumerNetworkClient
from ottla.client.consumer.group.handover import Handover
from ottla.client.consumer.group.membership.retry import Retry
from ottla.client.consumer.group.rebalance_listener import Callback, RebalanceListener
from ottla.client.consumer.offsets.auto_commit import AutoCommit
from ottla.client.consumer.offsets.commits import may_succeed_later
from ottla.client.consumer.subscription_state import SubscriptionState
from ottla.client.metrics.sensor import Sensor
from ottla.client.runtime.future import Future
from ottla.client.runtime.steps import Steps
from ottla.errors import ErrorCode, KafkaError
from ottla.model import FOREVER, OffsetAndMetadata, TopicPartition
from ottla.trace import EventStream

NO_TOPIC = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID})
LOST = "all partitions are lost: the group goes on without this member, under another generation or member id"


class PartitionExchange:
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
        self._handover: Handover | None = None
        self.listener_times = {name: Sensor() for name in ("assigned", "revoked", "lost")}
        """Seconds in which the listener did what it does; of a coroutine until it has ended."""

    @property
    def waits(self) -> bool:
        """Whether something is under way."""
        return self._handover is not None

    @property
    def listening(self) -> bool:
        """Whether a coroutine of the listener is under way."""
        return self._handover is not None and self._handover.listening

    def wait_span(self, now: float) -> float:
        """Seconds until the patience with what is under way is over."""
        return FOREVER if self._handover is None else self._handover.deadline - now

    def go_on(self, now: float) -> bool:
        """Take what has come to its end further; False while something is under way."""
        while self._handover is not None:
            if not self._handover.due(now):
                return False
            handover, self._handover = self._handover, None
            handover.then()
        return True

    def abandon(self) -> None:
        """What is under way leads nowhere any more."""
        self._handover = None

    def consumed(self, among: Collection[TopicPartition] | None = None) -> dict[TopicPartition, OffsetAndMetadata]:
        """What is to be committed of these partitions before they go, if that is automatic."""
        if not self._auto_commit.enabled:
            return {}
        consumed = self._subscriptions.consumed()
        return {tp: at for tp, at in consumed.items() if among is None or tp in among}

    def commit_first(
        self,
        gone: Iterable[TopicPartition],
        offsets: dict[TopicPartition, OffsetAndMetadata],
        now: float,
        then: Callable[[], None],
        retry: Retry | None = None,
    ) -> None:
        """Hand out nothing more of what goes, commit `offsets`, and go on when that has an outcome, or takes too long.

        With `retry`, what may succeed later is tried again, without end: until it has an outcome a commit may still be on
        its way, and must not arrive when others have the partitions.
        """
        self._subscriptions.hold_back(gone)
        self._commit(offsets, now + self._patience if retry is None else FOREVER, then, retry)

    def _commit(
        self,
        offsets: dict[TopicPartition, OffsetAndMetadata],
        deadline: float,
        then: Callable[[], None],
        retry: Retry | None,
    ) -> None:
        commit = self._auto_commit.commit(offsets)

        def go_on() -> None:
            error = commit.exception(0) if commit.done() else None
            if retry is None or error is None or is_of_no_topic(error) or not may_succeed_later(error):
                then()
            else:
                at = retry.failed(self._client.client.clock.monotonic())
                self._handover = Handover(Future(), partial(self._commit, offsets, deadline, then, retry), at)

        self._handover = Handover(commit, go_on, deadline)
        if commit.done():
            self._handover = None
            go_on()

    def give_up(self, gone: list[TopicPartition], *, lost: bool, then: Callable[[], None]) -> None:
        """Tell the listener, have them no more, whatever it does, and go on."""

        def go_on() -> None:
            self._subscriptions.assign([tp for tp in self._subscriptions.assigned() if tp not in set(gone)])
            then()

        if not gone:
            go_on()
        elif lost:
            self._log.info(LOST)
            self._log.info("Lost previously assigned partitions %s", listed(gone))
            self._events.tell(events.Lost(tuple(sorted(gone))))
            self._tell("lost", self.listener.on_partitions_lost, gone, go_on)
        else:
            self._log.info("Revoke previously assigned partitions %s", listed(gone))
            self._events.tell(events.Revoked(tuple(sorted(gone))))
            self._tell("revoked", self.listener.on_partitions_revoked, gone, go_on)

    def assign(self, given: Collection[TopicPartition], added: list[TopicPartition], then: Callable[[], None]) -> None:
        """Have exactly these, tell the listener of what is new, and go on."""
        self._subscriptions.assign(given)
        self._log.info("newly assigned: %s", ", ".join(map(str, added)))
        self._events.tell(events.Assigned(tuple(sorted(given)), tuple(added)))
        self._tell("assigned", self.listener.on_partitions_assigned, added, then)

    def hear_out(self, until: float) -> Steps[None]:
        """Wait for a coroutine of the listener."""
        while (handover := self._handover) is not None and handover.listening:
            if not (yield from self._client.until(handover.waits_for.done, until)):
                return
            self._handover = None
            handover.then()

    def _tell(
        self, what: str, method: Callback, partitions: Iterable[TopicPartition], then: Callable[[], None]
    ) -> None:
        """Call the listener, and go on when it has ended, whatever it did: later, where it began a coroutine."""
        outcome: Any = None
        monotonic, sensor = self._client.client.clock.monotonic, self.listener_times[what]
        began = monotonic()
        try:
            outcome = method(sorted(partitions))
        finally:
            if not isinstance(outcome, Future):
                sensor.record(monotonic() - began)
                then()
        if isinstance(outcome, Future):
            outcome.add_done_callback(lambda _: sensor.record(monotonic() - began))
            self._handover = Handover(outcome, partial(go_on_after, outcome, then), listening=True)


def go_on_after(outcome: Future[None], then: Callable[[], None]) -> None:
    """Go on, and then raise what the listener has raised."""
    then()
    error = outcome.exception(0)
    if error is not None:
        raise error


def is_of_no_topic(error: Exception) -> bool:
    """Whether something was to be committed for a topic that was deleted: what is of others is committed by then."""
    return isinstance(error, KafkaError) and error.code in NO_TOPIC


def nothing() -> None:
    """Where nothing is to be done."""


def listed(partitions: Iterable[TopicPartition]) -> str:
    """Partitions as Kafka's logs show them."""
    return f"[{', '.join(map(str, sorted(partitions)))}]"


def compared(given: Iterable[TopicPartition], owned: Iterable[TopicPartition]) -> str:
    """The four lines in which Kafka tells what a rebalance has brought."""
    now, before = set(given), set(owned)
    return (
        f"\tAssigned partitions:                       {listed(now)}\n"
        f"\tCurrent owned partitions:                  {listed(before)}\n"
        f"\tAdded partitions (assigned - owned):       {listed(now - before)}\n"
        f"\tRevoked partitions (owned - assigned):     {listed(before - now)}"
    )
