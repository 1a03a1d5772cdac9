"""The thread that speaks to the group's coordinator while the user works.

A thin shell around a membership: it asks what to do, does it, and reports back. It has a `NetworkClient` of its own, so
that it shares nothing with the user's thread but the membership, under one lock that is never held across input,
output, or code of the user's. Errors that the user must hear are left in the membership.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from ottla.client.consumer.consumer_network_client import ConsumerNetworkClient
from ottla.client.consumer.coordinator.finder import CoordinatorFinder
from ottla.client.consumer.group import requests
from ottla.client.consumer.group.events import outcome, sending
from ottla.client.consumer.group.membership.step import Assign, Disconnect, End, Find, Send, Step, Wait
from ottla.client.metadata.cluster import Cluster
from ottla.client.network.client_request import ClientResponse
from ottla.client.runtime.future import THREAD, Future
from ottla.errors import ErrorCode, KafkaError, OttlaError
from ottla.protocol.messages.join_group import JoinGroupResponse
from ottla.protocol.messages.leave_group import LeaveGroupRequest
from ottla.trace import EventStream

if TYPE_CHECKING:
    from ottla.client.consumer.group.membership.membership import Membership

Leader = Callable[[JoinGroupResponse], tuple[Mapping[str, bytes], Mapping[str, int]]]
"""Shares partitions out: an assignment for each member id, and the topics it knew with their numbers of partitions."""
LONGEST_WAIT = 3600.0
FIRST_WITH_MEMBERS = 3
PAUSE_AFTER_A_FAULT = 1.0


class HeartbeatThread:
    """Joins, syncs, sends heartbeats, leaves.

    It has a thread and is none: `threading.Thread` gets new attributes with every Python, and one of them would hide ours.
    """

    def __init__(
        self,
        name: str,
        membership: Membership,
        lock: threading.Lock,
        client: ConsumerNetworkClient,
        finder: CoordinatorFinder,
        lead: Leader | None,
        wake_user: Callable[[], None],
        events: EventStream,
        log: logging.LoggerAdapter[Any],
    ) -> None:
        self.finder = finder
        self._membership = membership
        self._lock = lock
        self.client = client
        """Of this thread alone; others may look at it."""
        self._events = events
        self._clock = client.client.clock
        self._lead = lead
        self._wake_user = wake_user
        self._log = log
        self._pause = threading.Event()
        self.ended = False
        """Whether all is said that it had to say."""
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def is_alive(self) -> bool:
        """Whether it has begun and not ended."""
        return self._thread.is_alive()

    def join(self) -> None:
        self._thread.join()

    @property
    def thread(self) -> threading.Thread:
        """For somebody who wants to hold nothing else of it."""
        return self._thread

    def _run(self) -> None:
        THREAD.is_client = True
        try:
            while self.turn():
                pass
        finally:
            self.client.close()
            self.ended = True
            self._wake_user()

    def turn(self) -> bool:
        """Do the next thing, waiting where there is nothing to do; False when everything is said."""
        step = self._next_step()
        if isinstance(step, End):
            return False
        try:
            self._do(step)
        except BaseException as error:
            self._survive(as_exception(error))
        return True

    def wakeup(self) -> None:
        """Have it look at the membership again; from any thread."""
        self.client.client.wakeup()

    def cluster_of(self, topics: Collection[str], patience: float) -> Cluster:
        """The cluster with these topics as far as brokers know them, asked for now; in this thread only."""
        metadata = self.client.metadata
        now = self._clock.monotonic()
        metadata.want_only(topics, now)
        self.client.await_metadata(now + patience)
        cluster = metadata.cluster
        metadata.want_only((), now)
        return cluster

    def _next_step(self) -> Step:
        with self._lock:
            step = self._membership.decide(self._clock.monotonic(), self.finder.node)
        self._tell_news()
        return step

    def _do(self, step: Step) -> None:
        match step:
            case Find(span):
                wait = self.finder.ensure(self._clock.monotonic())
                self.client.poll(min(wait, span, LONGEST_WAIT), wakeable=False)
            case Send():
                self._send(step)
            case Assign(answer):
                self._assign(answer)
            case Disconnect(why, find_anew):
                self._disconnect(why, find_anew)
            case Wait(span):
                self.client.poll(min(span, LONGEST_WAIT), wakeable=False)

    def _send(self, step: Send) -> None:
        node = self.finder.node
        assert node is not None
        message = step.message
        if isinstance(message, LeaveGroupRequest) and self._is_old(node.node_id):
            message = requests.leave_of_old(message)
        future = self.client.send(node, message, timeout_ms=step.timeout_ms)
        future.add_done_callback(partial(self._handle, step))
        self._tell_event(sending, step)

    def _is_old(self, node_id: int) -> bool:
        versions = self.client.client.api_versions.get(node_id)
        return versions is not None and (versions.newest(LeaveGroupRequest.KEY) or 0) < FIRST_WITH_MEMBERS

    def _handle(self, step: Send, done: Future[ClientResponse]) -> None:
        """An answer, or why there is none."""
        error = done.exception(0)
        elsewhere: str | None = None
        self._tell_event(outcome, step, done)
        with self._lock:
            now = self._clock.monotonic()
            if error is None:
                elsewhere = self._membership.answered(step, done.result(0).message, now)
            else:
                elsewhere = self._membership.unanswered(step, error, now)
        if error is not None and not isinstance(error, KafkaError | TimeoutError):
            self._tell_user(error)
        if elsewhere:
            self.finder.mark_unknown(elsewhere)
            self.client.metadata.request_update()
        self._tell_news()
        self._wake_user()

    def _assign(self, answer: JoinGroupResponse) -> None:
        """Run the assignor, without the lock: it is the user's code perhaps, and may ask brokers for topics."""
        assert self._lead is not None
        try:
            assignments, counts = self._lead(answer)
        except BaseException as error:
            self._log.exception("assigning partitions failed")
            self._tell_user(as_exception(error))
            return
        with self._lock:
            self._membership.share(answer, assignments, counts)
        self._tell_news()

    def _disconnect(self, why: str, find_anew: bool) -> None:
        node = self.finder.node
        if node is not None:
            self.client.disconnect(node.node_id, why)
        if find_anew:
            self.finder.mark_unknown(why)

    def _survive(self, error: Exception) -> None:
        self.client.metadata.fatal = None
        self._tell_user(error)
        if not isinstance(error, OttlaError):
            self._pause.wait(PAUSE_AFTER_A_FAULT)

    def _tell_user(self, error: Exception) -> None:
        if isinstance(error, KafkaError) and error.code == ErrorCode.NETWORK_EXCEPTION:
            return
        if not isinstance(error, OttlaError):
            self._log.error("the heartbeat thread met an error", exc_info=error)
        with self._lock:
            self._membership.fail(error)
        self._wake_user()

    def _tell_event(self, event_of: Callable[..., Iterable[Any]], *what: Any) -> None:
        if self._events.rare_are_heard:
            for event in event_of(*what):
                self._events.tell(event)

    def _tell_news(self) -> None:
        with self._lock:
            news = self._membership.take_news()
        for level, text in news:
            self._log.log(level, "%s", text)


def as_exception(error: BaseException) -> Exception:
    """Return an error that `poll` may raise: SystemExit and its kind were meant for this thread, not for the user's."""
    if isinstance(error, Exception):
        return error
    failure = RuntimeError(f"{type(error).__name__} was raised in the heartbeat thread: {error}")
    failure.__cause__ = error
    return failure
