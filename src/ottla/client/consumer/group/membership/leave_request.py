"""The leave request of a member: sent when the coordinator is known, and retried after failures.

A member that has lost its coordinator looks it up for a moment, and then ends without a request; its session expires.
"""

from __future__ import annotations

import logging
from typing import Any, NamedTuple

from ottla.client.consumer.coordinator.generation import NO_GENERATION
from ottla.client.consumer.group.membership.retry import RetryTimer
from ottla.client.consumer.group.membership.step import DisconnectStep, FindCoordinatorStep, SendStep, Step, WaitStep
from ottla.client.metadata.coordinators import describe_node
from ottla.client.runtime.backoff import ExponentialBackoff
from ottla.model import FOREVER, Node

LEAVE_SECONDS = 1.0
"""How long in seconds a leaving member looks up a lost coordinator. After that its session expires."""
WHERE = "{where}"
LEFT = "the member leaves the group"
POLL_EXPIRED = (
    "poll() was not called for max.poll.interval.ms: processing the records of one poll takes too long. "
    "Raise max.poll.interval.ms, or lower max.poll.records"
)


class LeaveMessage(NamedTuple):
    message: Any
    text: str
    """The log line; WHERE is replaced by the coordinator."""
    reason: str


class LeaveRequest:
    """The pending leave request and its retries."""

    def __init__(
        self,
        backoff: ExponentialBackoff,
        log_lines: list[tuple[int, str]],
        *,
        request_timeout_ms: int,
        session_timeout_ms: int,
    ) -> None:
        self.log_lines = log_lines
        self._timeout_ms = request_timeout_ms
        self._session = session_timeout_ms / 1000
        self._retry = RetryTimer(backoff)
        self._leave_message: LeaveMessage | None = None
        self._due = False
        self._until = -FOREVER
        self._coordinator_lost_at: float | None = None
        self._sent: SendStep | None = None
        self._awaited_join: SendStep | None = None
        self._busy = False

    @property
    def is_due(self) -> bool:
        """True if the request must still be sent."""
        return self._due

    def wait_span(self, now: float) -> float:
        """Return the seconds to wait for a response before the end; infinity while a request is in flight."""
        if self._sent is not None:
            return FOREVER
        return 0.0 if self._awaited_join is None else max(0.0, self._until - now)

    def schedule_send(
        self, leave_message: LeaveMessage, now: float, *, busy: bool = False, until: float = FOREVER
    ) -> None:
        """Send a request, and retry it until `until`, but not longer than the member's session timeout.

        `busy`: the coordinator delays the response to an earlier request, and reads nothing from the connection before.
        The leave request is then sent on a new connection.
        """
        self._busy = self._busy or busy
        self._leave_message, self._due = leave_message, True
        self._until = min(until, now + self._session)
        self._coordinator_lost_at = None
        self._retry.reset()
        self._retry.skip_wait()

    def await_member_id(self, joining: SendStep, now: float) -> None:
        """Wait for the response to this JoinGroup, which contains the member id.

        Without a leave request for it, the group would wait for this member.
        """
        self._awaited_join, self._until = joining, now + LEAVE_SECONDS

    def resolve_member_id(self, sent: SendStep) -> bool:
        """Return True if this is the awaited JoinGroup."""
        if self._awaited_join is None or sent is not self._awaited_join:
            return False
        self._awaited_join = None
        return True

    def decide(self, now: float, coordinator: Node | None) -> Step:
        """Return the next step while the request is due."""
        assert self._leave_message is not None
        if self._busy:
            self._busy = False
            return DisconnectStep("leaving while the group rebalances", should_find_coordinator=False)
        if coordinator is None:
            return self._find_coordinator(now)
        self._coordinator_lost_at = None
        if now < self._retry.at:
            return WaitStep(self._retry.at - now)
        self._due = False
        self._log(logging.INFO, self._leave_message.text.replace(WHERE, describe_node(coordinator)))
        self._sent = SendStep(self._leave_message.message, self._timeout_ms, NO_GENERATION, self._leave_message.reason)
        return self._sent

    def take_result(self, sent: SendStep) -> bool:
        """Return True if `sent` is the leave request. Its result is then recorded."""
        if self._sent is None or sent is not self._sent:
            return False
        self._sent = None
        return True

    def retry_later(self, api: str, reason: object, now: float) -> None:
        """Handle a failed request: retry it if there is time."""
        self._due = self._retry.record_failure(now) < self._until
        more = "it is retried" if self._due else "the member is removed when its session expires"
        self._log(logging.INFO, f"{api} failed with error: {reason}; {more}")

    def cancel(self) -> None:
        """Cancel the request, because the member rejoins."""
        self._due = False

    def _find_coordinator(self, now: float) -> Step:
        if self._coordinator_lost_at is None:
            self._coordinator_lost_at = now
        patience = min(self._coordinator_lost_at + LEAVE_SECONDS, self._until) - now
        if patience > 0:
            return FindCoordinatorStep(patience)
        self._due = False
        self._log(
            logging.INFO,
            "No leave request sent: the coordinator is unknown; the member is removed when its session expires",
        )
        return WaitStep(0.0)

    def _log(self, level: int, text: str) -> None:
        self.log_lines.append((level, text))
