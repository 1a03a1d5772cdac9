"""A consumer's part in its group, as seen by the user's thread.

Gives partitions up before a rebalance and takes them after it, calls the listener, commits. What is said to the
coordinator for membership the heartbeat's thread says. The two share a `Membership` under the one lock here, which is
held for decisions only: never while anything is sent, received, waited for, logged, or called that is not ours.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Mapping
from typing import Any

from ottla.client.consumer.assignors.assignor import Assignor
from ottla.client.consumer.config import ConsumerConfig
from ottla.client.consumer.consumer_network_client import ConsumerNetworkClient
from ottla.client.consumer.coordinator.finder import CoordinatorFinder
from ottla.client.consumer.coordinator.generation import ConsumerGroupMetadata, Generation
from ottla.client.consumer.group.heartbeat_thread import HeartbeatThread
from ottla.client.consumer.group.membership.consumer_state import ConsumerState
from ottla.client.consumer.group.membership.member_state import MemberState
from ottla.client.consumer.group.membership.standing import Standing
from ottla.client.consumer.group.partition_exchange import PartitionExchange, nothing
from ottla.client.consumer.group.parts import GroupParts
from ottla.client.consumer.group.protocol import classic_protocol, consumer_protocol
from ottla.client.consumer.group.rebalance_listener import RebalanceListener
from ottla.client.consumer.group.thread import GroupThread
from ottla.client.consumer.offsets.auto_commit import AutoCommit
from ottla.client.consumer.offsets.commits import (
    NOT_A_MEMBER,
    REBALANCING,
    OffsetCommits,
)
from ottla.client.consumer.offsets.committed import CommittedOffsets
from ottla.client.consumer.subscription_state import SubscriptionState
from ottla.client.metrics.sensor import Sensor
from ottla.client.runtime.backoff import ExponentialBackoff
from ottla.client.runtime.deadline import ClosingDeadline
from ottla.client.runtime.steps import Steps
from ottla.errors import (
    CommitFailedError,
    ErrorCode,
    IllegalStateError,
    RebalanceInProgressError,
)
from ottla.kafka_id import new_id
from ottla.model import FOREVER, Node, OffsetAndMetadata, TopicPartition
from ottla.trace import EventStream

CLOSING = "the consumer closes"
ABANDONED = "the consumer was not closed"
ABANDON_SECONDS = 1.0
UNSUBSCRIBED = "the consumer gave up all of its topics"


class ConsumerCoordinator:
    """Membership and commits of one consumer."""

    def __init__(
        self,
        config: ConsumerConfig,
        client_id: str,
        client: ConsumerNetworkClient,
        subscriptions: SubscriptionState,
        assignors: Mapping[str, Assignor],
        backoff: ExponentialBackoff,
        make_client: Callable[[], ConsumerNetworkClient],
        stream: EventStream,
        make_thread: Callable[..., HeartbeatThread] = HeartbeatThread,
        new_member_id: Callable[[], str] = new_id,
    ) -> None:
        self.log = group_log(config, client_id)
        self._config = config
        self._client = client
        self._clock = client.client.clock
        self._subscriptions = subscriptions
        self._backoff = backoff
        self._make_client = make_client
        self._make_thread = make_thread
        self._events = stream
        self._finder = CoordinatorFinder(client, config, backoff, self.log)
        self.commits = OffsetCommits(
            config, client, self._finder, backoff, self._committing_member, self._shared, stream, self.log
        )
        self.committed = CommittedOffsets(
            config, client, self._finder, subscriptions, backoff, self._asking_member, self.log
        )
        self._auto_commit = AutoCommit(config, self.commits, client.client, self.log)
        self._lock = threading.Lock()
        self._thread = GroupThread(client, self._new_thread)
        self._disowned = False
        self._send_wait = 0.0
        self._is_polling = False
        """True during `poll`, and after an exception has ended it."""
        self._must_restart = False
        """True if a step of a rebalance may be half done."""
        self._exchange = PartitionExchange(
            client, subscriptions, self._auto_commit, config.max_poll_interval_ms, stream, self.log
        )
        parts = GroupParts(
            config,
            subscriptions,
            client.metadata,
            self._exchange,
            self._auto_commit,
            backoff,
            self._lock,
            self._thread.wake,
            self.log,
        )
        if config.group_protocol == "consumer":
            protocol = consumer_protocol(parts, new_member_id())
        else:
            protocol = classic_protocol(parts, assignors, self.request_rejoin, self._thread.cluster_of)
        self._membership, self.heartbeat, self._topics = protocol.membership, protocol.heartbeat, protocol.topics
        self._rebalance, self._lead = protocol.rebalance, protocol.lead

    @property
    def state(self) -> MemberState | ConsumerState:
        """Where this member is on its way into the group."""
        return self._membership.state

    @property
    def node(self) -> Node | None:
        """The group's coordinator, as far as this thread knows."""
        return self._finder.node

    @property
    def heartbeat_thread(self) -> HeartbeatThread | None:
        """The thread that speaks to the coordinator; None before the first `poll` of a subscriber."""
        return self._thread.thread

    @property
    def listener_times(self) -> Mapping[str, Sensor]:
        """How long what the listener does took: `assigned`, `revoked` and `lost`."""
        return self._exchange.listener_times

    @property
    def listener(self) -> RebalanceListener:
        """Who hears of partitions that come and go."""
        return self._exchange.listener

    @listener.setter
    def listener(self, listener: RebalanceListener) -> None:
        self._exchange.listener = listener

    def reset(self, error: Exception) -> None:
        """Forget what is under way with the coordinator, after an exception in the middle of a call.

        The membership stays, and with it the right to commit. Where the exception ended a step of a rebalance, that is
        done again by the next `poll`.
        """
        self._finder.reset()
        self.committed.reset()
        self.commits.reset(error)
        self._must_restart = self._is_polling
        self._is_polling = False

    def poll(self, now: float) -> None:
        """Do what is due. Blocks only where the listener does; raises what the user must hear."""
        if self._disowned:
            raise IllegalStateError("this client belongs to the process that forked this one; make a new one here")
        self._is_polling = True
        self._send_wait = self.commits.send_waiting()
        if self._subscriptions.by_group:
            if self._must_restart:
                self._exchange.abandon()
                self._rebalance.restart()
                self._must_restart = False
            self._topics.look()
            with self._lock:
                self._membership.heartbeat.poll(now)
                self._membership.subscribe()
                failure = self._membership.take_failure()
            self._finder.adopt(self._thread.ensure().finder.node)
            if failure is not None:
                raise failure
            self._rebalance.look()
            if self._exchange.go_on(now):
                self._rebalance.proceed(now)
        if not self._exchange.waits and self._auto_commit.enabled:
            self._auto_commit.maybe_commit(now, self._consumed_by_member)
        self._is_polling = False

    def wait_span(self, now: float) -> float:
        """Seconds after which `poll` has something to do, unless the heartbeat's thread wakes the user's before."""
        spans = (self._send_wait, self._auto_commit.wait(now), self._config.max_poll_interval_ms / 3000)
        return max(0.0, min(*spans, self._exchange.wait_span(now), self._rebalance.wait_span(now)))

    def subscription_changed(self) -> None:
        """The user wants something else: the group is told at the next `poll`."""
        self._topics.changed(self._clock.monotonic())

    def request_rejoin(self, reason: str, *, resubscribed: bool = False) -> None:
        """Have the group rebalance, where members have a say in that."""
        with self._lock:
            self._membership.request_rejoin(reason, resubscribed=resubscribed)
        self._thread.wake()

    def group_metadata(self) -> ConsumerGroupMetadata:
        """The generation in which this member was given its partitions; also once it is lost: nobody else read in it."""
        with self._lock:
            return self._as_metadata(self._rebalance.taken_as)

    @property
    def listening(self) -> bool:
        """Whether a coroutine of the listener is under way."""
        return self._exchange.listening

    def leave(self, reason: str = UNSUBSCRIBED, until: float = FOREVER) -> Steps[None]:
        """Give everything up and leave the group; the others hear of it while this goes on."""
        try:
            self._topics.reset()
            with self._lock:
                self._membership.prepare_leaving()
            yield from self._exchange.wait_for_listener(until)
            self._exchange.abandon()
            if self._subscriptions.by_group:
                lost = self._membership.generation.is_none
                self._exchange.give_up(list(self._subscriptions.assigned()), lost=lost, then=nothing)
                yield from self._exchange.wait_for_listener(until)
        finally:
            self._go(reason, until)

    def _go(self, reason: str, until: float) -> None:
        """Be no member any more, and have the thread say so."""
        self._exchange.abandon()
        self._rebalance.reset()
        with self._lock:
            now = self._clock.monotonic()
            self._membership.leave(reason, now, silently=self._stays_silent(reason), until=until)
            self._membership.unsubscribe()
        self._thread.wake()

    def close(self, deadline: ClosingDeadline) -> Steps[None]:
        """Commit what is to be committed, leave, and end the thread, by the deadline. What was done of it may be done again."""
        if self._disowned:
            return
        try:
            with deadline.hurried():
                yield from self._commit_finally(deadline)
        finally:
            try:
                if self._subscriptions.by_group:
                    with deadline.hurried():
                        yield from self.leave(CLOSING, deadline.at)
            finally:
                if self._membership.active:  # Ctrl-C came between, or had kept `unsubscribe` from it
                    self._go(CLOSING, deadline.at)
                with self._lock:
                    self._membership.closing = True
                yield from self._thread.end(deadline)

    def abandon(self) -> threading.Thread | None:
        """Leave without waiting and without a word to the user, who has dropped the consumer; returns who says it."""
        thread = self._thread.thread
        # The garbage collector may have come here in the very thread that holds the lock.
        if self._disowned or thread is None or not self._lock.acquire(timeout=ABANDON_SECONDS):
            return None
        try:
            self._membership.leave(ABANDONED, self._clock.monotonic(), silently=self._stays_silent(CLOSING))
            self._membership.unsubscribe()
            self._membership.closing = True
        finally:
            self._lock.release()
        thread.wakeup()
        return thread.thread

    def disown(self) -> None:
        """In a child that was forked: the membership is the parent's, and so may be whoever held the lock."""
        self._disowned = True
        self._lock = threading.Lock()
        self._thread.thread = None

    def _new_thread(self) -> HeartbeatThread:
        client = self._make_client()
        return self._make_thread(
            f"kafka-coordinator-heartbeat-thread | {self._config.group_id}",
            self._membership,
            self._lock,
            client,
            CoordinatorFinder(client, self._config, self._backoff, self.log),
            self._lead,
            self._client.client.wakeup,
            self._events,
            self.log,
        )

    def _stays_silent(self, reason: str) -> bool:
        return reason == CLOSING and not self._config.internal_leave_group_on_close

    # Commits.

    def _shared(self) -> Collection[TopicPartition]:
        """What the group may take away."""
        return self._subscriptions.assigned() if self._subscriptions.by_group else ()

    def _asking_member(self) -> ConsumerGroupMetadata:
        """As whom to ask for what is committed: as nobody in particular while this is no member."""
        with self._lock:
            return self._as_metadata(self._membership.generation)

    def _as_metadata(self, generation: Generation) -> ConsumerGroupMetadata:
        group, instance = self._config.group_id or "", self._config.group_instance_id
        return ConsumerGroupMetadata(group, generation.generation_id, generation.member_id, instance)

    def _committing_member(self) -> ConsumerGroupMetadata:
        """As whom to commit; raises when this is no member who may."""
        if not self._subscriptions.by_group:
            return ConsumerGroupMetadata(self._config.group_id or "")
        with self._lock:
            standing, generation = self._membership.standing, self._membership.generation
        if standing is Standing.REBALANCING:
            raise RebalanceInProgressError(ErrorCode.REBALANCE_IN_PROGRESS, REBALANCING)
        if standing is Standing.OUTSIDE:
            raise CommitFailedError(ErrorCode.UNKNOWN_MEMBER_ID, NOT_A_MEMBER)
        return self._as_metadata(generation)

    def _consumed_by_member(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """What may be committed now: a subscriber commits only as a member in good standing."""
        if self._subscriptions.by_group and self._membership.standing is not Standing.GOOD:
            return {}
        return self._subscriptions.consumed()

    def _commit_finally(self, deadline: ClosingDeadline) -> Steps[None]:
        left = deadline.at - self._clock.monotonic()
        offsets = self._consumed_by_member() if self._auto_commit.enabled else {}
        yield from self._auto_commit.commit_finally(offsets, left / 2)
        self.commits.give_up(IllegalStateError("the consumer was closed before the offsets could be committed"))


def group_log(config: ConsumerConfig, client_id: str) -> logging.LoggerAdapter[Any]:
    """Return a logger whose lines start with the client id and the group id, as in the Java client."""
    instance = f"instanceId={config.group_instance_id}, " if config.group_instance_id else ""
    prefix = f"[Consumer {instance}clientId={client_id}, groupId={config.group_id}] "
    return PrefixedLog(logging.getLogger(__name__), {"prefix": prefix})


class PrefixedLog(logging.LoggerAdapter[Any]):
    """Puts a prefix before each line."""

    def process(self, msg: Any, kwargs: Any) -> tuple[Any, Any]:
        assert self.extra is not None
        return f"{str(self.extra['prefix']).replace('%', '%%')}{msg}", kwargs
