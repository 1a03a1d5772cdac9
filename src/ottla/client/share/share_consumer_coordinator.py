"""The membership of a share consumer in the user's thread.

The heartbeat thread sends the heartbeats, so that the membership survives while the user processes records. Both threads
share a `ShareMembership` under the one lock here, which is held for decisions only, never during I/O or waits.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any
from uuid import UUID

from ottla.client.consumer.consumer_network_client import ConsumerNetworkClient
from ottla.client.consumer.coordinator.finder import CoordinatorFinder
from ottla.client.consumer.group.consumer_coordinator import PrefixedLog
from ottla.client.consumer.group.heartbeat import Heartbeat
from ottla.client.consumer.group.heartbeat_thread import HeartbeatThread
from ottla.client.consumer.group.thread import GroupThread
from ottla.client.runtime.backoff import ExponentialBackoff
from ottla.client.runtime.deadline import ClosingDeadline
from ottla.client.runtime.steps import Steps
from ottla.client.share.config import ShareConsumerConfig
from ottla.client.share.state.share_membership import FIRST_INTERVAL_MS, ShareMembership, ShareMemberState
from ottla.errors import IllegalStateError
from ottla.kafka_id import new_id
from ottla.model import FOREVER
from ottla.trace import EventStream

CLOSING = "the consumer is closed"
ABANDONED = "the consumer was not closed"
ABANDON_SECONDS = 1.0
UNSUBSCRIBED = "unsubscribe() was called"


class ShareConsumerCoordinator:
    """The membership of one share consumer."""

    def __init__(
        self,
        config: ShareConsumerConfig,
        client_id: str,
        client: ConsumerNetworkClient,
        backoff: ExponentialBackoff,
        make_client: Callable[[], ConsumerNetworkClient],
        events: EventStream,
        make_thread: Callable[..., HeartbeatThread] = HeartbeatThread,
        new_member_id: Callable[[], str] = new_id,
    ) -> None:
        self.log = share_log(config, client_id)
        self._config = config
        self._client = client
        self._clock = client.client.clock
        self._backoff = backoff
        self._make_client = make_client
        self._make_thread = make_thread
        self._events = events
        self._lock = threading.Lock()
        self._thread = GroupThread(client, self._new_thread)
        self._disowned = False
        self.heartbeat = Heartbeat(
            interval_ms=FIRST_INTERVAL_MS,
            session_timeout_ms=FOREVER,
            max_poll_interval_ms=config.max_poll_interval_ms,
        )
        self._membership = ShareMembership(config, self.heartbeat, backoff, new_member_id())

    @property
    def state(self) -> ShareMemberState:
        """The state of the membership."""
        return self._membership.state

    @property
    def member_id(self) -> str:
        """The id of this member, also in share sessions."""
        return self._membership.member_id

    @property
    def assignment(self) -> frozenset[tuple[UUID, int]]:
        """The assigned partitions, by topic id."""
        return self._membership.assignment

    @property
    def heartbeat_thread(self) -> HeartbeatThread | None:
        """The thread that communicates with the coordinator; None before the first `poll`."""
        return self._thread.thread

    def poll(self, topics: frozenset[str], now: float) -> frozenset[tuple[UUID, int]]:
        """Keep the membership, with this subscription, and return the assignment. Raises errors for the user."""
        if self._disowned:
            raise IllegalStateError("this client belongs to the parent process; create a new one after a fork")
        with self._lock:
            self.heartbeat.poll(now)
            was_waiting = self._membership.subscribe(topics)
            failure = self._membership.take_failure()
            assignment = self._membership.assignment
        self._thread.ensure_running()
        if was_waiting:
            self._thread.wake()
        if failure is not None:
            raise failure
        return assignment

    def set_subscription(self, topics: frozenset[str]) -> None:
        """Send a changed subscription at once if this is a member already."""
        with self._lock:
            if not self._membership.active:
                return
            self._membership.subscribe(topics)
        self._thread.wake()

    def wait_span(self) -> float:
        """Return the longest time in seconds between two calls of `poll` in a waiting call."""
        return self._config.max_poll_interval_ms / 3000

    def leave(self, reason: str = UNSUBSCRIBED, until: float = FOREVER) -> None:
        """Leave the group; the heartbeat thread sends the request."""
        with self._lock:
            self._membership.leave(reason, self._clock.monotonic(), until=until)
        self._thread.wake()

    def close(self, deadline: ClosingDeadline) -> Steps[None]:
        """Leave the group and end the thread by the deadline. May be repeated after an interrupt."""
        if self._disowned:
            return
        self.leave(CLOSING, deadline.at)
        with self._lock:
            self._membership.closing = True
        yield from self._thread.stop(deadline)

    def abandon(self) -> threading.Thread | None:
        """Leave without waiting, for a garbage collected consumer. Return the thread that sends the request."""
        thread = self._thread.thread
        # The garbage collector may run this in the thread that holds the lock.
        if self._disowned or thread is None or not self._lock.acquire(timeout=ABANDON_SECONDS):
            return None
        try:
            self._membership.leave(ABANDONED, self._clock.monotonic())
            self._membership.closing = True
        finally:
            self._lock.release()
        thread.wakeup()
        return thread.thread

    def disown(self) -> None:
        """Disown the membership in a forked child: it belongs to the parent, whose thread may hold the lock."""
        self._disowned = True
        self._lock = threading.Lock()
        self._thread.thread = None

    def _new_thread(self) -> HeartbeatThread:
        client = self._make_client()
        return self._make_thread(
            f"kafka-share-heartbeat-thread | {self._config.group_id}",
            self._membership,
            self._lock,
            client,
            CoordinatorFinder(client, self._config, self._backoff, self.log),
            None,
            self._client.client.wakeup,
            self._events,
            self.log,
        )


def share_log(config: ShareConsumerConfig, client_id: str) -> logging.LoggerAdapter[Any]:
    """Return a logger that prefixes each line with the client id and the group id, as in the Java client."""
    prefix = f"[ShareConsumer clientId={client_id}, groupId={config.group_id}] "
    return PrefixedLog(logging.getLogger(__name__), {"prefix": prefix})
