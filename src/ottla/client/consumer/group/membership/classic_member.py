"""The state of a member of the classic protocol: its state and generation, and how they are lost.

The requests and responses are handled by `ClassicMembership`.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ottla.client.consumer.config import ConsumerConfig
from ottla.client.consumer.coordinator.coordinator_errors import coordinator_error
from ottla.client.consumer.coordinator.generation import NO_GENERATION, Generation
from ottla.client.consumer.group.heartbeat import Heartbeat
from ottla.client.consumer.group.membership.leave_request import LeaveRequest
from ottla.client.consumer.group.membership.member_state import (
    SEEN_BY_COORDINATOR,
    TRANSITIONS,
    ClassicMemberEvent,
    ClassicMemberState,
    E,
    S,
)
from ottla.client.consumer.group.membership.retry import RetryTimer
from ottla.client.consumer.group.membership.step import SendStep
from ottla.client.runtime.backoff import ExponentialBackoff
from ottla.errors import ErrorCode, name_of
from ottla.protocol.messages.heartbeat import HeartbeatRequest
from ottla.protocol.messages.join_group import JoinGroupRequestProtocol, JoinGroupResponse
from ottla.protocol.messages.sync_group import SyncGroupRequest


class AssignedPartitions(NamedTuple):
    """The assignment of a member, and the topics that the leader knew when it made it."""

    generation: Generation
    data: Any
    counts: Mapping[str, int] | None
    """The partition counts of the group's topics; None for a member that is not the leader."""


class ClassicMemberBase:
    """The state that both threads share."""

    def __init__(self, config: ConsumerConfig, heartbeat: Heartbeat, backoff: ExponentialBackoff) -> None:
        self.state = ClassicMemberState.UNJOINED
        self.generation = NO_GENERATION
        self.heartbeat = heartbeat
        self.active = False
        """True while the user is subscribed."""
        self.closing = False
        self.log_lines: list[tuple[int, str]] = []
        self._config = config
        self._rejoin_reason: str | None = None
        self._protocols: Sequence[JoinGroupRequestProtocol] | None = None
        self._in_flight: SendStep | None = None
        self._leave_request = LeaveRequest(
            backoff,
            self.log_lines,
            request_timeout_ms=config.request_timeout_ms,
            session_timeout_ms=config.session_timeout_ms,
        )
        self._to_assign: JoinGroupResponse | None = None
        self._sync: SyncGroupRequest | None = None
        self._counts: Mapping[str, int] | None = None
        self._assigned: AssignedPartitions | None = None
        self._failure: Exception | None = None
        self._fenced = False
        self._retry = RetryTimer(backoff)

    @property
    def is_leave_due(self) -> bool:
        """True if a leave request must still be sent."""
        return self._leave_request.is_due

    def request_rejoin(self, reason: str, *, resubscribed: bool = False) -> None:
        """Request that the member joins again, in any state.

        With `resubscribed` the prepared subscription is discarded.
        """
        self._log(logging.INFO, f"rejoining the group: {reason}")
        self._rejoin_reason = reason
        if resubscribed:
            self._protocols = None

    def take_failure(self) -> Exception | None:
        """Return an error for the user once; a fenced member returns its error each time, because it is permanent."""
        failure = self._failure
        if not self._fenced:
            self._failure = None
        return failure

    def take_log_lines(self) -> list[tuple[int, str]]:
        """Return the log lines not taken yet."""
        log_lines = self.log_lines[:]
        self.log_lines.clear()
        return log_lines

    def fail(self, error: Exception) -> None:
        """Record an error for the user. Joining starts again at the next `poll`."""
        self._failure = error
        self._transition(E.FAILED)
        self._in_flight = self._to_assign = self._sync = None
        self._protocols = None
        self.heartbeat.stop()
        self._rejoin_reason = self._rejoin_reason if self._rejoin_reason is not None else ""

    def check(self) -> None:
        """Assert the invariants."""
        assert self._sync is None or self.state is S.COMPLETING_REBALANCE
        assert self._to_assign is None or self.state is S.COMPLETING_REBALANCE
        assert self.state not in SEEN_BY_COORDINATOR or not self.generation.is_none
        assert self._in_flight is None or not isinstance(self._in_flight.message, HeartbeatRequest) or self.active
        assert self.state is not S.PREPARING_REBALANCE or self._in_flight is not None

    def _fail_permanently(self, code: int) -> None:
        """Handle a fatal error from the coordinator."""
        self.fail(coordinator_error(code, self._config))
        self._fenced = code == ErrorCode.FENCED_INSTANCE_ID
        if self._fenced:
            self._reset_session(NO_GENERATION)

    def _reset_generation(self, code: int, api: str) -> None:
        """Handle an unknown member or generation: the assignment is lost."""
        keeps_name = code == ErrorCode.ILLEGAL_GENERATION
        lost = "generation" if keeps_name else "generation and member id"
        reason = f"{api} returned {name_of(code)}"
        self._log(logging.INFO, f"dropped {lost}: {reason}")
        self._transition(E.FAILED)
        self._reset_session(Generation(member_id=self.generation.member_id) if keeps_name else NO_GENERATION)
        self.request_rejoin(reason)

    def _retry_join(self, reason: str, now: float) -> None:
        self._log(logging.INFO, reason)
        self._transition(E.FAILED)
        self.heartbeat.stop()
        self._rejoin_reason = self._rejoin_reason if self._rejoin_reason is not None else reason
        self._retry_later(now)

    def _retry_later(self, now: float) -> None:
        self.heartbeat.send_by(self._retry.record_failure(now))

    def _reset_session(self, generation: Generation) -> None:
        self.generation = generation
        self._in_flight = self._to_assign = self._sync = self._protocols = self._assigned = self._counts = None
        self._retry.skip_wait()
        self.heartbeat.stop()

    def _transition(self, event: ClassicMemberEvent) -> None:
        self.state = TRANSITIONS[self.state, event]

    def _log(self, level: int, text: str) -> None:
        self.log_lines.append((level, text))
