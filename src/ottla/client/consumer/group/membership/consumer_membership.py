"""A member of the KIP-848 protocol, with ConsumerGroupHeartbeat as its only request.

The heartbeat joins, keeps the session, reports the subscription and the owned partitions, and leaves. The heartbeat
thread calls `decide` and reports the results; the user's thread sets the subscription, reconciles the assignment with
`target`, and confirms that (`acknowledge`). The caller holds the coordinator's lock, which is held for nothing else.
Corresponds to Java's ConsumerMembershipManager.

    UNSUBSCRIBED ─► JOINING ── assigned ──► RECONCILING ── reconciled ──► ACKNOWLEDGING ── sent ──► STABLE
        ▲             ▲                         ▲ └──────── assigned ◄──────────┴───────────────────────┘
        │             ├── released ── FENCED ◄──┤ fenced by the coordinator
        │             └── released ── STALE ◄── LEAVING ◄── max.poll.interval.ms exceeded
        └── LEAVING ◄── PREPARE_LEAVING ◄── the user leaves                        FATAL ◄── fatal error
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from ottla.client.consumer.coordinator.coordinator_errors import (
    RETRIABLE_ERRORS,
    coordinator_error,
    coordinator_lost_reason,
    is_fatal,
)
from ottla.client.consumer.coordinator.generation import NO_GENERATION
from ottla.client.consumer.group.membership.consumer_member import ConsumerMemberBase, TargetAssignment
from ottla.client.consumer.group.membership.consumer_state import ACTIVE, IN_GROUP, SILENT, E, S
from ottla.client.consumer.group.membership.heartbeat_fields import JOINING, SubscribedTopics, TopicIdPartition
from ottla.client.consumer.group.membership.step import EndStep, FindCoordinatorStep, SendStep, Step, WaitStep
from ottla.errors import ErrorCode, name_of
from ottla.model import FOREVER, Node
from ottla.protocol.messages.join_group import JoinGroupResponse

LEAVING_STATES = frozenset({S.LEAVING, S.UNSUBSCRIBED, S.STALE})
"""States in which a failed leave request is sent again."""
FENCED_ERRORS = frozenset({ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID})


class ConsumerMembership(ConsumerMemberBase):
    """The membership between its user and the coordinator."""

    # Called by the user's thread.

    def subscribe(self) -> None:
        """Become a member; called by each `poll`."""
        self._is_paused = False
        self.active = True
        if self.state is S.UNSUBSCRIBED:
            self._is_released = True  # nothing was assigned
            self._transition(E.SUBSCRIBED)

    def set_subscription(self, subscription: SubscribedTopics) -> None:
        """Set the subscription; a change is sent at once."""
        self._subscription = subscription

    def request_rejoin(self, reason: str, *, resubscribed: bool = False) -> None:
        """Log a warning: only the coordinator decides on rebalances."""
        self._log(
            logging.WARNING, "enforce_rebalance() does nothing with group.protocol=consumer: the coordinator decides"
        )

    def record_release(self) -> None:
        """Confirm that the lost partitions were given up."""
        self._is_released = True
        if self.state in (S.FENCED, S.STALE):
            self._transition(E.RELEASED)

    def acknowledge(self, target: TargetAssignment, partitions: frozenset[TopicIdPartition]) -> None:
        """Report the partitions that the user's thread owns after reconciling `target` as far as possible."""
        if target.life != self.life or self.state not in IN_GROUP:
            return
        self._owned, self._must_report = partitions, True
        if self.state is S.RECONCILING:
            self._transition(E.RECONCILED)

    def prepare_leaving(self) -> None:
        """Start to leave: the listener is called first and may still commit."""
        if self.state not in (S.PREPARE_LEAVING, S.UNSUBSCRIBED, S.LEAVING):
            self._transition(E.PREPARED)

    def leave(self, reason: str, now: float, *, silently: bool = False, until: float = FOREVER) -> None:
        """Leave the group and reset the member.

        `silently`: send no leave heartbeat. `until`: the time until which a failed one is retried.
        """
        if self.state is S.LEAVING:
            self._is_user_idle = False  # it is leaving already, and does not rejoin
        elif self._is_registered and not silently:
            self._send_leave(reason, now, until)
            self._transition(E.LEFT)
        elif self.state is not S.UNSUBSCRIBED:
            self._transition(E.GONE)
        self._reset()
        self._subscription, self._failure, self._is_user_idle, self._is_released = None, None, False, True
        self.last_generation = NO_GENERATION
        self._retry.skip_wait()

    def unsubscribe(self) -> None:
        """End the membership; called together with `leave`."""
        self.active = False

    # Called by the heartbeat thread.

    def decide(self, now: float, coordinator: Node | None) -> Step:
        """Return the next step."""
        if self._leave_request.is_due:
            if self.state in LEAVING_STATES:
                return self._decide_leaving(now, coordinator)
            self._leave_request.cancel()  # it has joined again under the same id
        if self.closing:
            return WaitStep(FOREVER) if self._leave_request.wait_span(now) else EndStep()
        if not self.active or self._is_paused or self.state in SILENT or self._subscription is None:
            return WaitStep(FOREVER)
        if self._is_watched() and self.heartbeat.is_poll_expired(now):
            self._leave_idle_user(now)
            return self.decide(now, coordinator)
        if self._in_flight is not None:
            return WaitStep(self._next_alarm(now))
        if now < self._retry.at:
            return WaitStep(min(self._retry.at - now, self._next_alarm(now)))
        if coordinator is None:
            return FindCoordinatorStep(self._next_alarm(now))
        if self._is_due(now):
            return self._send(now)
        return WaitStep(min(self.heartbeat.time_to_next(now), self._next_alarm(now)))

    def handle_response(self, sent: SendStep, message: Any, now: float) -> str | None:
        """Handle a response. Return a reason to look up the coordinator again, or None."""
        if self._leave_request.take_result(sent):
            return self._handle_leave_response(message.error_code, now)
        if sent is not self._in_flight:
            return None  # a request from before a reset
        self._in_flight = None
        if sent.message.member_epoch < JOINING and coordinator_lost_reason(message.error_code) is None:
            self._may_block_own_join = False  # no old registration is left
            return None
        if message.error_code:
            return self._handle_error(sent, message, now)
        self._retry.reset()
        self._handle_success(message, now)
        return None

    def handle_failure(self, sent: SendStep, error: Exception, now: float) -> str | None:
        """Handle a failed request. Return as `handle_response` does."""
        if self._leave_request.take_result(sent):
            if self.state in LEAVING_STATES:
                self._leave_request.retry_later("leave heartbeat", error, now)
            return str(error)
        if sent is not self._in_flight:
            return None
        self._in_flight = None
        self._log(logging.INFO, f"ConsumerGroupHeartbeat failed: {error}")
        self._may_block_own_join |= self.state is S.JOINING and self._config.group_instance_id is not None
        self._retry_later(now)
        return str(error)

    def distribute(
        self, response: JoinGroupResponse, assignments: Mapping[str, bytes], counts: Mapping[str, int]
    ) -> None:
        """Not used: the coordinator assigns the partitions."""

    def _decide_leaving(self, now: float, coordinator: Node | None) -> Step:
        was_in_group = self.state is S.LEAVING
        step = self._leave_request.decide(now, coordinator)
        if was_in_group and not self._leave_request.is_due:
            self._transition(E.GONE_IDLE if self._is_user_idle else E.GONE)
            self._is_user_idle = False
            if self.state is S.STALE and self._is_released:
                self._transition(E.RELEASED)
            elif self.state is S.UNSUBSCRIBED and self.active:  # the user has subscribed again
                self._transition(E.SUBSCRIBED)
        return step

    def _handle_leave_response(self, code: int, now: float) -> str | None:
        if code in RETRIABLE_ERRORS and self.state in LEAVING_STATES:
            self._leave_request.retry_later("leave heartbeat", name_of(code), now)
            return coordinator_lost_reason(code)
        self._log(logging.DEBUG, f"leave heartbeat failed with error: {name_of(code)}" if code else "has left")
        return None

    def _is_due(self, now: float) -> bool:
        if self.state is S.JOINING and self.epoch == JOINING:
            return True
        assert self._subscription is not None
        return (
            self._must_report or self._fields.has_changed(self._subscription) or self.heartbeat.time_to_next(now) <= 0
        )

    def _send(self, now: float) -> SendStep:
        assert self._subscription is not None
        if self.state is S.JOINING and self._may_block_own_join:
            message = self._fields.build_leave(self.member_id)
            self._in_flight = SendStep(message, self._config.request_timeout_ms, self.generation)
            return self._in_flight
        message = self._fields.build(self.member_id, self.epoch, self._subscription, self._owned)
        self._is_registered, self._must_report = True, False
        self.heartbeat.record_sent(now)
        if self.state is S.JOINING:
            self._log(logging.INFO, "joining the group")
        if self.state is S.ACKNOWLEDGING:
            assert self._target is not None
            self._transition(E.ALL_REPORTED if self._owned == self._target.partitions else E.PART_REPORTED)
        generation = self.generation
        self._in_flight = SendStep(message, self._config.request_timeout_ms, generation)
        return self._in_flight

    def _handle_success(self, message: Any, now: float) -> None:
        """Handle a successful heartbeat, which may contain a new assignment."""
        self.member_id = message.member_id or self.member_id
        self.heartbeat.interval = (message.heartbeat_interval_ms / 1000) or self.heartbeat.interval
        joined = self.epoch == JOINING
        if self.state not in ACTIVE:  # leaving
            self.epoch = message.member_epoch if self._is_registered else JOINING
            return
        self.epoch = message.member_epoch
        self.last_generation = self.generation
        if joined:
            self._log(logging.INFO, f"joined, with member epoch {self.epoch} as {self.member_id}")
            self.heartbeat.start(now)
        else:
            self.heartbeat.record_received(now)
        if message.assignment is not None or joined:
            self._set_target(message.assignment.topic_partitions if message.assignment is not None else ())

    def _set_target(self, assignment: Any) -> None:
        partitions = frozenset((each.topic_id, partition) for each in assignment for partition in each.partitions)
        if self._target is None or partitions != self._target.partitions:
            self._target = TargetAssignment(self.life, partitions)
            self._transition(E.ASSIGNED)

    def _handle_error(self, sent: SendStep, message: Any, now: float) -> str | None:
        code = message.error_code
        # The group was deleted meanwhile, or converted to the classic protocol.
        is_gone = code == ErrorCode.GROUP_ID_NOT_FOUND and sent.message.member_epoch != JOINING
        if code in FENCED_ERRORS or is_gone:
            self._fence(code, now)
        elif (
            code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
        ):  # retried until access is granted or the subscription changes
            self._failure = coordinator_error(code, self._config, message.error_message)
            self._retry_later(now)
        elif is_fatal(code):
            self._log(logging.ERROR, f"ConsumerGroupHeartbeat failed: {name_of(code)}: {message.error_message}")
            self.fail(coordinator_error(code, self._config, message.error_message))
        else:
            self._log(logging.INFO, f"ConsumerGroupHeartbeat failed: {name_of(code)}")
            self._retry_later(now)
        return coordinator_lost_reason(code)

    def _retry_later(self, now: float) -> None:
        """Retry later with a full heartbeat, because the last one may not have arrived."""
        self._fields.reset()
        self.heartbeat.send_by(self._retry.record_failure(now))

    def _next_alarm(self, now: float) -> float:
        """Return the seconds until a poll timeout takes effect."""
        return self.heartbeat.time_to_poll_expiry(now) + 0.001 if self._is_watched() else FOREVER
