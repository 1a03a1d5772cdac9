"""The group membership of a consumer in the user's thread.

Revokes partitions before a rebalance and assigns them after it, calls the listener, and commits. The heartbeat thread
sends the membership requests. Both threads share a `Membership` under the one lock here. The lock is held for decisions
only, never during I/O, waits, logging or user code. Corresponds to Java's ConsumerCoordinator.
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
from ottla.client.consumer.group.membership.member_state import ClassicMemberState
from ottla.client.consumer.group.membership.standing import Standing
from ottla.client.consumer.group.partition_exchange import PartitionExchange, do_nothing
from ottla.client.consumer.group.parts import GroupParts
from ottla.client.consumer.group.protocol import classic_protocol, consumer_protocol
from ottla.client.consumer.group.rebalance_listener import RebalanceListener
from ottla.client.consumer.group.thread import GroupThread
from ottla.client.consumer.offsets.auto_commit import AutoCommit
from ottla.client.consumer.offsets.commits import (
    NOT_A_MEMBER_TEXT,
    REBALANCING_TEXT,
    OffsetCommits,
)
from ottla.client.consumer.offsets.committed import ConsumerCommittedOffsets
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

CLOSING = "the consumer is closed"
ABANDONED = "the consumer was not closed"
ABANDON_SECONDS = 1.0
UNSUBSCRIBED = "unsubscribe() was called"


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
            config, client, self._finder, backoff, self._member_for_commits, self._group_partitions, stream, self.log
        )
        self.committed = ConsumerCommittedOffsets(
            config, client, self._finder, subscriptions, backoff, self._member_for_queries, self.log
        )
        self._auto_commit = AutoCommit(config, self.commits, client.client, self.log)
        self._lock = threading.Lock()
        self._thread = GroupThread(client, self._new_thread)
        self._disowned = False
        self._send_wait = 0.0
        self._is_polling = False
        """True during `poll`, and after an exception has ended it."""
        self._must_restart = False
        """True if a step of a rebalance may be incomplete."""
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
            protocol = classic_protocol(parts, assignors, self.request_rejoin, self._thread.fetch_cluster)
        self._membership, self.heartbeat, self._topics = protocol.membership, protocol.heartbeat, protocol.topics
        self._rebalance, self._lead = protocol.rebalance, protocol.lead

    @property
    def state(self) -> ClassicMemberState | ConsumerState:
        """The state of the membership."""
        return self._membership.state

    @property
    def node(self) -> Node | None:
        """The group coordinator, if this thread knows it."""
        return self._finder.node

    @property
    def heartbeat_thread(self) -> HeartbeatThread | None:
        """The thread that communicates with the coordinator; None before the first `poll` of a subscriber."""
        return self._thread.thread

    @property
    def listener_times(self) -> Mapping[str, Sensor]:
        """The duration of listener calls: `assigned`, `revoked` and `lost`."""
        return self._exchange.listener_times

    @property
    def listener(self) -> RebalanceListener:
        """The rebalance listener."""
        return self._exchange.listener

    @listener.setter
    def listener(self, listener: RebalanceListener) -> None:
        self._exchange.listener = listener

    def reset(self, error: Exception) -> None:
        """Forget requests in flight, after an exception interrupted a call.

        The membership is kept, so positions can still be committed. If the exception interrupted a step of a rebalance,
        the next `poll` repeats it.
        """
        self._finder.reset()
        self.committed.reset()
        self.commits.reset(error)
        self._must_restart = self._is_polling
        self._is_polling = False

    def poll(self, now: float) -> None:
        """Do the work that is due. Blocks only in the listener; raises errors for the user."""
        if self._disowned:
            raise IllegalStateError("this client belongs to the parent process; create a new one after a fork")
        self._is_polling = True
        self._send_wait = self.commits.send_waiting()
        if self._subscriptions.is_group_managed:
            if self._must_restart:
                self._exchange.abandon()
                self._rebalance.restart()
                self._must_restart = False
            self._topics.check_topics()
            with self._lock:
                self._membership.heartbeat.poll(now)
                self._membership.subscribe()
                failure = self._membership.take_failure()
            self._finder.set_node(self._thread.ensure_running().finder.node)
            if failure is not None:
                raise failure
            self._rebalance.drop_obsolete_wait()
            if self._exchange.resume(now):
                self._rebalance.proceed(now)
        if not self._exchange.is_waiting and self._auto_commit.enabled:
            self._auto_commit.maybe_commit(now, self._consumed_by_member)
        self._is_polling = False

    def wait_span(self, now: float) -> float:
        """Return the seconds until `poll` has work. The heartbeat thread may wake the user's thread earlier."""
        spans = (self._send_wait, self._auto_commit.time_until_due(now), self._config.max_poll_interval_ms / 3000)
        return max(0.0, min(*spans, self._exchange.wait_span(now), self._rebalance.wait_span(now)))

    def handle_subscription_change(self) -> None:
        """Record that the subscription changed; the next `poll` informs the group."""
        self._topics.record_subscription_change(self._clock.monotonic())

    def request_rejoin(self, reason: str, *, resubscribed: bool = False) -> None:
        """Request a rebalance, if the protocol allows members to do so."""
        with self._lock:
            self._membership.request_rejoin(reason, resubscribed=resubscribed)
        self._thread.wake()

    def group_metadata(self) -> ConsumerGroupMetadata:
        """Return the group metadata of the last assignment.

        It is kept after the generation is lost, because the records read in it may still be committed in a transaction.
        """
        with self._lock:
            return self._make_group_metadata(self._rebalance.assigned_generation)

    @property
    def is_listener_running(self) -> bool:
        """True while a coroutine of the listener runs."""
        return self._exchange.is_listener_running

    def leave(self, reason: str = UNSUBSCRIBED, until: float = FOREVER) -> Steps[None]:
        """Revoke all partitions and leave the group."""
        try:
            self._topics.reset()
            with self._lock:
                self._membership.prepare_leaving()
            yield from self._exchange.wait_for_listener(until)
            self._exchange.abandon()
            if self._subscriptions.is_group_managed:
                lost = self._membership.generation.is_none
                self._exchange.revoke(list(self._subscriptions.assigned()), lost=lost, then=do_nothing)
                yield from self._exchange.wait_for_listener(until)
        finally:
            self._end_membership(reason, until)

    def _end_membership(self, reason: str, until: float) -> None:
        """End the membership and let the heartbeat thread send the leave request."""
        self._exchange.abandon()
        self._rebalance.reset()
        with self._lock:
            now = self._clock.monotonic()
            self._membership.leave(reason, now, silently=self._should_leave_silently(reason), until=until)
            self._membership.unsubscribe()
        self._thread.wake()

    def close(self, deadline: ClosingDeadline) -> Steps[None]:
        """Commit, leave the group and end the thread by the deadline. May be repeated after an interrupt."""
        if self._disowned:
            return
        try:
            with deadline.shorten_on_interrupt():
                yield from self._commit_finally(deadline)
        finally:
            try:
                if self._subscriptions.is_group_managed:
                    with deadline.shorten_on_interrupt():
                        yield from self.leave(CLOSING, deadline.at)
            finally:
                if self._membership.active:  # Ctrl-C interrupted before `unsubscribe`
                    self._end_membership(CLOSING, deadline.at)
                with self._lock:
                    self._membership.closing = True
                yield from self._thread.stop(deadline)

    def abandon(self) -> threading.Thread | None:
        """Leave without waiting and without calling the listener, for a garbage collected consumer.

        Return the thread that sends the request.
        """
        thread = self._thread.thread
        # The garbage collector may run this in the thread that holds the lock.
        if self._disowned or thread is None or not self._lock.acquire(timeout=ABANDON_SECONDS):
            return None
        try:
            self._membership.leave(ABANDONED, self._clock.monotonic(), silently=self._should_leave_silently(CLOSING))
            self._membership.unsubscribe()
            self._membership.closing = True
        finally:
            self._lock.release()
        thread.wakeup()
        return thread.thread

    def disown(self) -> None:
        """Disable this object in a forked child.

        The membership belongs to the parent process, and a thread of the parent may hold the lock.
        """
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

    def _should_leave_silently(self, reason: str) -> bool:
        return reason == CLOSING and not self._config.internal_leave_group_on_close

    # Commits.

    def _group_partitions(self) -> Collection[TopicPartition]:
        """Return the partitions that the group may revoke."""
        return self._subscriptions.assigned() if self._subscriptions.is_group_managed else ()

    def _member_for_queries(self) -> ConsumerGroupMetadata:
        """Return the member for requests of committed offsets; without member id and generation while there is no membership."""
        with self._lock:
            return self._make_group_metadata(self._membership.generation)

    def _make_group_metadata(self, generation: Generation) -> ConsumerGroupMetadata:
        group, instance = self._config.group_id or "", self._config.group_instance_id
        return ConsumerGroupMetadata(group, generation.generation_id, generation.member_id, instance)

    def _member_for_commits(self) -> ConsumerGroupMetadata:
        """Return the member for commits. Raises if it may not commit now."""
        if not self._subscriptions.is_group_managed:
            return ConsumerGroupMetadata(self._config.group_id or "")
        with self._lock:
            standing, generation = self._membership.standing, self._membership.generation
        if standing is Standing.REBALANCING:
            raise RebalanceInProgressError(ErrorCode.REBALANCE_IN_PROGRESS, REBALANCING_TEXT)
        if standing is Standing.OUTSIDE:
            raise CommitFailedError(ErrorCode.UNKNOWN_MEMBER_ID, NOT_A_MEMBER_TEXT)
        return self._make_group_metadata(generation)

    def _consumed_by_member(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return the offsets that may be committed now. A subscriber may commit only while its membership is stable."""
        if self._subscriptions.is_group_managed and self._membership.standing is not Standing.GOOD:
            return {}
        return self._subscriptions.consumed_offsets()

    def _commit_finally(self, deadline: ClosingDeadline) -> Steps[None]:
        left = deadline.at - self._clock.monotonic()
        offsets = self._consumed_by_member() if self._auto_commit.enabled else {}
        yield from self._auto_commit.commit_finally(offsets, left / 2)
        self.commits.fail_unsent(IllegalStateError("the consumer was closed before the offsets could be committed"))


def group_log(config: ConsumerConfig, client_id: str) -> logging.LoggerAdapter[Any]:
    """Return a logger that prefixes each line with the client id and the group id, as in the Java client."""
    instance = f"instanceId={config.group_instance_id}, " if config.group_instance_id else ""
    prefix = f"[Consumer {instance}clientId={client_id}, groupId={config.group_id}] "
    return PrefixedLog(logging.getLogger(__name__), {"prefix": prefix})


class PrefixedLog(logging.LoggerAdapter[Any]):
    """Adds a prefix to each log line."""

    def process(self, msg: Any, kwargs: Any) -> tuple[Any, Any]:
        assert self.extra is not None
        return f"{str(self.extra['prefix']).replace('%', '%%')}{msg}", kwargs
