"""A member of the classic protocol: JoinGroup, SyncGroup, Heartbeat, LeaveGroup.

The heartbeat thread calls `decide` and reports the results; the user's thread reports when it is ready to join, and
takes the assignment. The caller holds the coordinator's lock, which is held for nothing else. Log lines are collected
in `log_lines` and written after the lock is released.

              ┌──────────────────────── JoinGroup sent ◄───────────────────────────────────────────┐
              ▼                                                                                    │
    UNJOINED ─► PREPARING_REBALANCE ── joined ──► COMPLETING_REBALANCE ── synced ──► STABLE ───────┘
        ▲               │                                  │                           │
        └────────── failed, left ──────────────────────────┴───────────────────────────┘

The coordinator knows nothing of topics. In a rebalance it collects a JoinGroup from every member, so it delays the
responses until the slowest member has joined (or `max.poll.interval.ms` has passed). Then the group has a new
generation, and one member, the leader, receives the subscriptions of all. The leader computes the assignment
(`GroupLeader`, in the heartbeat thread) and sends it with its SyncGroup. The SyncGroup requests of the other members
wait at the coordinator for it, and each response contains the member's own assignment. A member therefore sends two
requests, and both responses may be delayed:

1. The user's thread must finish the last generation before JoinGroup may be sent: it commits, calls the listener, and
revokes the partitions that the protocol requires (`should_prepare`, then `join`). Until then only heartbeats are sent.
2. The JoinGroup response ends the old generation and starts the heartbeats of the new one. The assignment is not known
yet.
3. The SyncGroup response is stored for the user's thread (`take_assigned`), which assigns the partitions in its next
`poll`.

A rebalance may be requested at any time: by the coordinator with REBALANCE_IN_PROGRESS in a heartbeat response, or by
this member with `request_rejoin`. A request during a rebalance is not lost: the reason stays in `_rejoin_reason` until
a JoinGroup is sent, or the member leaves.

ILLEGAL_GENERATION invalidates the generation, UNKNOWN_MEMBER_ID also the member id. In both cases the partitions are
lost, because other members may own them, and the listener receives `on_partitions_lost`. A lost connection or a moved
coordinator invalidates neither: the generation continues at another broker. MEMBER_ID_REQUIRED is not a failure: it
contains the member id for the second JoinGroup, so members that die before the first response leave nothing behind
(KIP-394).

Corresponds to Java's AbstractCoordinator.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ottla.client.consumer.coordinator.coordinator_errors import RETRIABLE_ERRORS, coordinator_lost_reason, is_fatal
from ottla.client.consumer.coordinator.generation import NO_GENERATION, Generation
from ottla.client.consumer.group import requests
from ottla.client.consumer.group.membership.classic_member import AssignedPartitions, ClassicMemberBase
from ottla.client.consumer.group.membership.leave_request import LEFT, POLL_EXPIRED, WHERE, LeaveMessage
from ottla.client.consumer.group.membership.member_state import (
    SEEN_BY_COORDINATOR,
    E,
    S,
)
from ottla.client.consumer.group.membership.standing import Standing
from ottla.client.consumer.group.membership.step import (
    AssignStep,
    DisconnectStep,
    EndStep,
    FindCoordinatorStep,
    SendStep,
    Step,
    WaitStep,
)
from ottla.errors import ErrorCode, name_of
from ottla.model import FOREVER, Node
from ottla.protocol.messages.heartbeat import HeartbeatRequest
from ottla.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from ottla.protocol.messages.sync_group import SyncGroupRequest


class ClassicMembership(ClassicMemberBase):
    """The membership between its user and the coordinator."""

    # Called by the user's thread.

    def subscribe(self) -> None:
        """Become a member."""
        if not self.active:
            self.active = True
            self._rejoin_reason = self._rejoin_reason or ""

    @property
    def should_prepare(self) -> bool:
        """True if a rebalance waits for this member to revoke partitions and call `join`."""
        return self.active and self._rejoin_reason is not None and self._protocols is None and self._assigned is None

    @property
    def standing(self) -> Standing:
        """The member's right to commit."""
        if self.state is S.STABLE:
            return Standing.GOOD
        return Standing.OUTSIDE if self.state is S.UNJOINED else Standing.REBALANCING

    def join(self, protocols: Sequence[JoinGroupRequestProtocol], generation: Generation) -> None:
        """Allow JoinGroup to be sent with these subscriptions. The caller has revoked everything that must be revoked.

        Ignored if `generation` has ended meanwhile, because then all partitions must be revoked.
        """
        if generation == self.generation:
            self._protocols = protocols

    def take_assigned(self) -> AssignedPartitions | None:
        """Return the assignment not taken yet, or None."""
        assigned, self._assigned = self._assigned, None
        return assigned

    def prepare_leaving(self) -> None:
        """Do nothing: a classic member sends LeaveGroup after its partitions are revoked."""

    def leave(self, reason: str, now: float, *, silently: bool = False, until: float = FOREVER) -> None:
        """Leave the group and reset the member.

        `silently`: send no LeaveGroup. `until`: the time until which a failed LeaveGroup is retried.
        """
        if not silently and self._config.group_instance_id is None:
            if self.generation.member_id:
                self._send_leave(self.generation.member_id, reason, now, busy=self._can_be_delayed(), until=until)
            elif self._in_flight is not None:
                self._leave_request.await_member_id(self._in_flight, now)
        if not self.generation.is_none or self.state is not S.UNJOINED:
            self._log(logging.INFO, f"dropped generation and member id: {LEFT}")
        self._transition(E.LEFT)
        self._reset_session(NO_GENERATION)
        self._rejoin_reason = None
        self._failure, self._fenced = None, False

    def unsubscribe(self) -> None:
        """End the membership; called together with `leave`."""
        self.active = False
        self._rejoin_reason = None

    # Called by the heartbeat thread.

    def decide(self, now: float, coordinator: Node | None) -> Step:
        """Return the next step."""
        if self._leave_request.is_due:
            return self._leave_request.decide(now, coordinator)
        if self.closing:
            wait = self._leave_request.wait_span(now)
            return WaitStep(wait) if wait > 0 else EndStep()
        if not self.active:
            return WaitStep(FOREVER)
        if self.state in SEEN_BY_COORDINATOR and self.heartbeat.is_poll_expired(now):
            self._leave_idle_user(now)
            return self.decide(now, coordinator)
        if self.heartbeat.is_session_expired(now) and self.state is S.STABLE:
            return self._disconnect_silent_coordinator(now)
        if self._in_flight is not None:
            return WaitStep(self._next_alarm(now))
        if now < self._retry.at:
            return WaitStep(min(self._retry.at - now, self._next_alarm(now)))
        return self._decide_next(now, coordinator)

    def handle_response(self, sent: SendStep, message: Any, now: float) -> str | None:
        """Handle a response. Return a reason to look up the coordinator again, or None."""
        if self._leave_request.take_result(sent):
            return self._handle_leave_response(message, now)
        if self._leave_request.resolve_member_id(sent) and message.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self._send_leave(message.member_id, "the member left before its join completed", now)
        if sent is not self._in_flight:
            return None  # a request from before a reset
        self._in_flight = None
        self._retry.reset()
        return ANSWERS[type(sent.message)](self, sent, message, now)

    def handle_failure(self, sent: SendStep, error: Exception, now: float) -> str | None:
        """Handle a failed request. Return as `handle_response` does."""
        if self._leave_request.take_result(sent):
            self._leave_request.retry_later("LeaveGroup request", error, now)
            return str(error)
        self._leave_request.resolve_member_id(sent)
        if sent is not self._in_flight:
            return None  # a request from before a reset, perhaps disconnected by this member
        self._in_flight = None
        if isinstance(sent.message, HeartbeatRequest):
            self._retry_later(now)
        else:
            self._retry_join(f"{type(sent.message).__name__.removesuffix('Request')} failed: {error}", now)
        return str(error)

    def distribute(
        self, response: JoinGroupResponse, assignments: Mapping[str, bytes], counts: Mapping[str, int]
    ) -> None:
        """Store the leader's assignment; `counts` are the partition counts it is based on."""
        if self._to_assign is not response:
            return
        self._to_assign = None
        self._counts = counts
        self._log(logging.DEBUG, f"Sending leader SyncGroup for generation {self.generation}")
        self._sync = requests.build_sync(self._config, self.generation, assignments)

    def _decide_next(self, now: float, coordinator: Node | None) -> Step:
        wants_to_join = self._rejoin_reason is not None and self._protocols is not None
        if coordinator is None:
            seeks = wants_to_join or self.state in SEEN_BY_COORDINATOR
            return FindCoordinatorStep(self._next_alarm(now)) if seeks else WaitStep(FOREVER)
        if self._to_assign is not None:
            return AssignStep(self._to_assign)
        if self._sync is not None:
            message, self._sync = self._sync, None
            return self._send(message, self._join_timeout_ms())
        if wants_to_join and self.state in (S.UNJOINED, S.STABLE):
            return self._send_join()
        if self.state is S.STABLE and self.heartbeat.time_to_next(now) <= 0:
            self.heartbeat.record_sent(now)
            return self._send(requests.build_heartbeat(self._config, self.generation), self._config.request_timeout_ms)
        beat = self.heartbeat.time_to_next(now) if self.state is S.STABLE else FOREVER
        return WaitStep(min(beat, self._next_alarm(now)))

    def _next_alarm(self, now: float) -> float:
        """Return the seconds until a poll or session timeout takes effect."""
        return self.heartbeat.time_to_poll_expiry(now) + 0.001 if self.state in SEEN_BY_COORDINATOR else FOREVER

    def _send(self, message: Any, timeout_ms: int) -> SendStep:
        self._in_flight = SendStep(message, timeout_ms, self.generation)
        return self._in_flight

    def _send_join(self) -> SendStep:
        assert self._protocols is not None
        self._log(logging.INFO, "joining the group")
        self._transition(E.JOIN_SENT)
        self.heartbeat.stop()
        # A rebalance requested from now on is a later one.
        reason, self._rejoin_reason = self._rejoin_reason, None
        message = requests.build_join(self._config, self.generation, self._protocols, reason or None)
        return self._send(message, self._join_timeout_ms())

    def _join_timeout_ms(self) -> int:
        # The coordinator may delay the response until the slowest member has joined, up to the rebalance timeout.
        return max(self._config.request_timeout_ms, self._config.max_poll_interval_ms + 5000)

    def _handle_join_response(self, sent: SendStep, response: JoinGroupResponse, now: float) -> str | None:
        code = response.error_code
        if code == ErrorCode.MEMBER_ID_REQUIRED:
            self._transition(E.FAILED)
            self.generation = Generation(member_id=response.member_id)
            self.request_rejoin(f"use of the member id {response.member_id}")
            return None
        if code:
            return self._handle_join_error("JoinGroup", sent, code, now)
        self._transition(E.JOINED)
        self.generation = Generation(response.generation_id, response.member_id, response.protocol_name)
        self._log(logging.INFO, f"joined the group in generation {self.generation}")
        self.heartbeat.start(now)
        self._counts = None
        if response.leader == response.member_id:
            self._to_assign = response
        else:
            self._sync = requests.build_sync(self._config, self.generation, {})
        return None

    def _handle_sync_response(self, sent: SendStep, response: Any, now: float) -> str | None:
        if response.error_code == ErrorCode.REBALANCE_IN_PROGRESS:
            text = f"SyncGroup failed: rebalance in progress in generation {sent.generation}; joining again"
            self._log(logging.INFO, text)
            self._transition(E.FAILED)
            self.heartbeat.stop()
            self._rejoin_reason = "another rebalance started"
            return None
        if response.error_code:
            return self._handle_join_error("SyncGroup", sent, response.error_code, now)
        self._transition(E.SYNCED)
        self._log(logging.INFO, f"received the assignment of generation {self.generation}")
        self._assigned = AssignedPartitions(self.generation, response.assignment, self._counts)
        self._protocols = None
        return None

    def _handle_join_error(self, api: str, sent: SendStep, code: int, now: float) -> str | None:
        if code == ErrorCode.UNKNOWN_MEMBER_ID or code == ErrorCode.ILLEGAL_GENERATION:
            text = f"{api} as {sent.generation}: {name_of(code)}; joining again"
            self._log(logging.INFO, text)
            self._reset_generation(code, api.upper().replace("GROUP", "_GROUP"))
            return None
        if is_fatal(code):
            self._fail_permanently(code)
            return None
        self._retry_join(f"{api} as {sent.generation}: {name_of(code)}", now)
        return coordinator_lost_reason(code)

    def _handle_heartbeat_response(self, sent: SendStep, response: Any, now: float) -> str | None:
        code = response.error_code
        if not code:
            self.heartbeat.record_received(now)
        elif code == ErrorCode.REBALANCE_IN_PROGRESS:
            self.heartbeat.record_received(now)  # the coordinator responded, so the session is extended
            if self._rejoin_reason is None:
                self.request_rejoin("a rebalance is in progress")
        elif code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION):
            instance = self._config.group_instance_id
            text = f"heartbeat of {sent.generation} with group instance id {instance} failed: "
            self._log(logging.INFO, f"{text}{name_of(code)}; the generation is dropped")
            self._reset_generation(code, "HEARTBEAT")
        elif is_fatal(code):
            self._fail_permanently(code)
        else:
            self._log(logging.INFO, f"heartbeat failed: {name_of(code)}")
            self._retry_later(now)
            return coordinator_lost_reason(code)
        return None

    def _send_leave(self, member: str, reason: str, now: float, *, busy: bool = False, until: float = FOREVER) -> None:
        message = requests.build_leave(self._config.group_id or "", member, reason)
        text = f"Member {member} sending LeaveGroup request to coordinator {WHERE} due to {reason}"
        self._leave_request.schedule_send(LeaveMessage(message, text, reason), now, busy=busy, until=until)

    def _handle_leave_response(self, response: Any, now: float) -> str | None:
        code = response.error_code or next((m.error_code for m in response.members), 0)
        if code in RETRIABLE_ERRORS:
            self._leave_request.retry_later("LeaveGroup request", name_of(code), now)
            return coordinator_lost_reason(code)
        level = logging.INFO if code and code != ErrorCode.UNKNOWN_MEMBER_ID else logging.DEBUG
        api = f"failed with error: {name_of(code)}" if code else "returned successfully"
        self._log(level, f"LeaveGroup request {api}")
        return None

    def _leave_idle_user(self, now: float) -> None:
        self._log(logging.WARNING, POLL_EXPIRED)
        self.leave("poll() was not called for max.poll.interval.ms", now)
        self.request_rejoin(LEFT)

    def _disconnect_silent_coordinator(self, now: float) -> Step:
        self._in_flight = None
        self.heartbeat.record_received(now)
        self.heartbeat.send_by(now)
        return DisconnectStep("no heartbeat response for a session timeout", should_find_coordinator=True)

    def _can_be_delayed(self) -> bool:
        """Return True if the coordinator may be delaying a response to this member."""
        return self._in_flight is not None and isinstance(self._in_flight.message, JoinGroupRequest | SyncGroupRequest)


ANSWERS: Mapping[type, Callable[[ClassicMembership, SendStep, Any, float], str | None]] = {
    JoinGroupRequest: ClassicMembership._handle_join_response,
    SyncGroupRequest: ClassicMembership._handle_sync_response,
    HeartbeatRequest: ClassicMembership._handle_heartbeat_response,
}
