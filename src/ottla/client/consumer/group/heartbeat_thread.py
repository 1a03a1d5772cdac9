"""The thread that communicates with the group coordinator while the user's thread works.

A thin shell around a membership: it asks the membership for the next `Step`, performs it, and reports the result. It
has its own `NetworkClient`, so it shares only the membership with the user's thread, under one lock that is never held
during I/O or user code. Errors for the user are stored in the membership.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from typing import Any, Protocol

from ottla.client.consumer.consumer_network_client import ConsumerNetworkClient
from ottla.client.consumer.coordinator.finder import CoordinatorFinder
from ottla.client.consumer.group import requests
from ottla.client.consumer.group.events import request_events, response_events
from ottla.client.consumer.group.membership.step import (
    AssignStep,
    DisconnectStep,
    EndStep,
    FindCoordinatorStep,
    SendStep,
    Step,
    WaitStep,
)
from ottla.client.metadata.metadata_snapshot import MetadataSnapshot
from ottla.client.network.client_request import ClientResponse
from ottla.client.runtime.future import THREAD, Future
from ottla.errors import ErrorCode, KafkaError, OttlaError
from ottla.model import Node
from ottla.protocol.messages.join_group import JoinGroupResponse
from ottla.protocol.messages.leave_group import LeaveGroupRequest
from ottla.trace import EventStream

Leader = Callable[[JoinGroupResponse], tuple[Mapping[str, bytes], Mapping[str, int]]]
"""Assigns partitions: returns an assignment for each member id, and the partition counts of the topics it was based on.
"""
LONGEST_WAIT = 3600.0


class ThreadMembership(Protocol):
    """The methods of a membership that the thread calls, under the lock."""

    @property
    def is_leave_due(self) -> bool: ...

    def decide(self, now: float, coordinator: Node | None) -> Step: ...

    def handle_response(self, sent: SendStep, message: Any, now: float) -> str | None: ...

    def handle_failure(self, sent: SendStep, error: Exception, now: float) -> str | None: ...

    def distribute(
        self, response: JoinGroupResponse, assignments: Mapping[str, bytes], counts: Mapping[str, int]
    ) -> None: ...

    def fail(self, error: Exception) -> None: ...

    def take_log_lines(self) -> list[tuple[int, str]]: ...


FIRST_WITH_MEMBERS = 3
PAUSE_AFTER_A_FAULT = 1.0


class HeartbeatThread:
    """Sends JoinGroup, SyncGroup, Heartbeat and LeaveGroup requests, or ConsumerGroupHeartbeat.

    It contains a thread instead of inheriting from it: each Python version adds attributes to `threading.Thread`, and
    one of them could collide.
    """

    def __init__(
        self,
        name: str,
        membership: ThreadMembership,
        lock: threading.Lock,
        client: ConsumerNetworkClient,
        finder: CoordinatorFinder,
        assign_partitions: Leader | None,
        wake_user: Callable[[], None],
        events: EventStream,
        log: logging.LoggerAdapter[Any],
    ) -> None:
        self.finder = finder
        self._membership = membership
        self._lock = lock
        self.client = client
        """Used by this thread only; other threads may inspect it."""
        self._events = events
        self._clock = client.client.clock
        self._assign_partitions = assign_partitions
        self._wake_user = wake_user
        self._log = log
        self._pause = threading.Event()
        self.ended = False
        """True after the thread has finished."""
        self.turns = 0
        """The number of completed steps."""
        self._is_sending = False
        """True if the last step left a request that is not written to its connection, or if a leave request is due."""
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def is_alive(self) -> bool:
        """Return True while the thread runs."""
        return self._thread.is_alive()

    def join(self) -> None:
        self._thread.join()

    @property
    def thread(self) -> threading.Thread:
        """The thread itself, for callers that should not keep this object alive."""
        return self._thread

    def _run(self) -> None:
        THREAD.is_client = True
        try:
            while self.run_once():
                pass
        finally:
            self.client.close()
            self.ended = True
            self._wake_user()

    def run_once(self) -> bool:
        """Perform the next step, waiting if there is none. Return False after the last step."""
        step = self._next_step()
        if isinstance(step, EndStep):
            return False
        try:
            self._perform(step)
        except BaseException as error:
            self._handle_error(as_exception(error))
        self._is_sending = self._membership.is_leave_due or bool(self.client.unsent)
        self.turns += 1
        return True

    def has_sent_since(self, turn: int) -> bool:
        """Return True if everything that the membership decided since the step number `turn` is written to its connection.

        Step `turn` may have been decided earlier than it was performed, so the following step must be completed too.
        """
        return self.turns >= turn + 2 and not self._is_sending

    def wakeup(self) -> None:
        """Make the thread check the membership again. May be called from any thread."""
        self.client.client.wakeup()

    def fetch_cluster(self, topics: Collection[str], patience: float) -> MetadataSnapshot:
        """Return the cluster with current metadata of these topics. Only for this thread."""
        metadata = self.client.metadata
        now = self._clock.monotonic()
        metadata.track_only(topics, now)
        self.client.await_metadata(now + patience)
        cluster = metadata.cluster
        metadata.track_only((), now)
        return cluster

    def _next_step(self) -> Step:
        with self._lock:
            step = self._membership.decide(self._clock.monotonic(), self.finder.node)
        self._write_log_lines()
        return step

    def _perform(self, step: Step) -> None:
        match step:
            case FindCoordinatorStep(span):
                wait = self.finder.ensure_lookup(self._clock.monotonic())
                self.client.poll(min(wait, span, LONGEST_WAIT), wakeable=False)
            case SendStep():
                self._send(step)
            case AssignStep(response):
                self._assign(response)
            case DisconnectStep(reason, find_coordinator):
                self._disconnect(reason, find_coordinator)
            case WaitStep(span):
                self.client.poll(min(span, LONGEST_WAIT), wakeable=False)

    def _send(self, step: SendStep) -> None:
        node = self.finder.node
        assert node is not None
        message = step.message
        if isinstance(message, LeaveGroupRequest) and self._is_old(node.node_id):
            message = requests.leave_request_before_v3(message)
        future = self.client.send(node, message, timeout_ms=step.timeout_ms)
        future.add_done_callback(partial(self._handle, step))
        self._publish_events(request_events, step)

    def _is_old(self, node_id: int) -> bool:
        versions = self.client.client.api_versions.get(node_id)
        return versions is not None and (versions.newest_version(LeaveGroupRequest.KEY) or 0) < FIRST_WITH_MEMBERS

    def _handle(self, step: SendStep, done: Future[ClientResponse]) -> None:
        """Handle a response or a failed request."""
        error = done.exception(0)
        lost_reason: str | None = None
        self._publish_events(response_events, step, done)
        with self._lock:
            now = self._clock.monotonic()
            if error is None:
                lost_reason = self._membership.handle_response(step, done.result(0).message, now)
            else:
                lost_reason = self._membership.handle_failure(step, error, now)
        if error is not None and not isinstance(error, KafkaError | TimeoutError):
            self._report_to_user(error)
        if lost_reason:
            self.finder.mark_unknown(lost_reason)
            self.client.metadata.request_update()
        self._write_log_lines()
        self._wake_user()

    def _assign(self, response: JoinGroupResponse) -> None:
        """Run the assignor without the lock, because it may be user code and may request metadata."""
        assert self._assign_partitions is not None
        try:
            assignments, counts = self._assign_partitions(response)
        except BaseException as error:
            self._log.exception("assigning partitions failed")
            self._report_to_user(as_exception(error))
            return
        with self._lock:
            self._membership.distribute(response, assignments, counts)
        self._write_log_lines()

    def _disconnect(self, reason: str, find_coordinator: bool) -> None:
        node = self.finder.node
        if node is not None:
            self.client.disconnect(node.node_id, reason)
        if find_coordinator:
            self.finder.mark_unknown(reason)

    def _handle_error(self, error: Exception) -> None:
        self.client.metadata.fatal = None
        self._report_to_user(error)
        if not isinstance(error, OttlaError):
            self._pause.wait(PAUSE_AFTER_A_FAULT)

    def _report_to_user(self, error: Exception) -> None:
        if isinstance(error, KafkaError) and error.code == ErrorCode.NETWORK_EXCEPTION:
            return
        if not isinstance(error, OttlaError):
            self._log.error("heartbeat thread failed; it continues", exc_info=error)
        with self._lock:
            self._membership.fail(error)
        self._wake_user()

    def _publish_events(self, make_events: Callable[..., Iterable[Any]], *what: Any) -> None:
        if self._events.has_rare_listener:
            for event in make_events(*what):
                self._events.publish(event)

    def _write_log_lines(self) -> None:
        with self._lock:
            log_lines = self._membership.take_log_lines()
        for level, text in log_lines:
            self._log.log(level, "%s", text)


def as_exception(error: BaseException) -> Exception:
    """Return an error that `poll` may raise. SystemExit and similar exceptions concern this thread, not the user's."""
    if isinstance(error, Exception):
        return error
    failure = RuntimeError(f"{type(error).__name__} was raised in the heartbeat thread: {error}")
    failure.__cause__ = error
    return failure
