"""A member that speaks the classic protocol: JoinGroup, SyncGroup, Heartbeat, LeaveGroup.

The heartbeat's thread asks `decide` and reports back; the user's thread says when it is ready to join, and takes what
was assigned. Whoever calls holds the coordinator's lock, which is held for nothing else. What is worth saying aloud
gathers in `news`, to be told when the lock is free again.

              ┌──────────────────────── JoinGroup sent ◄───────────────────────────────────────────┐
              ▼                                                                                    │
    UNJOINED ─► PREPARING_REBALANCE ── joined ──► COMPLETING_REBALANCE ── synced ──► STABLE ───────┘
        ▲               │                                  │                           │
        └────────── failed, left ──────────────────────────┴───────────────────────────┘

What a rebalance is, and who waits for whom. The coordinator knows nothing of topics. It gathers a JoinGroup of every
member, which is why it holds the answers back until the slowest has come (or `max.poll.interval.ms` is over); then
the group has a new generation, and one member, the leader, is told what all others subscribe to. The leader shares
out (`GroupLeader`, in the heartbeat's thread) and sends the result with its SyncGroup; the others' SyncGroups wait at
the coordinator for that, and bring each member its own share. So a member's way is two questions, and each answer may
be long in coming:

1. The user's thread must be through with the last generation before JoinGroup may go out: it has committed, told the
   listener, and given up what the protocol asks for (`must_prepare`, then `join`). Until then this machine only beats.
2. JoinGroup's answer ends the old generation and begins the heartbeats of the new one. What there is to read is not
   known yet.
3. SyncGroup's answer is laid down for the user's thread (`take_assigned`), which takes the partitions with its next
   `poll`.

A rebalance is asked for by anybody at any moment: the coordinator tells of it by REBALANCE_IN_PROGRESS in the answer
to a heartbeat, this member by `request_rejoin`. One that is asked for while another is under way is not lost: the
reason stays in `_rejoin_reason` until a JoinGroup takes it along, or the member leaves.

Which errors cost what: ILLEGAL_GENERATION the generation, UNKNOWN_MEMBER_ID the name as well; in both cases the
partitions are lost, for others may have them already, and the listener hears `on_partitions_lost`. A lost connection
or a coordinator that has moved costs neither: the same generation goes on at another broker. Only MEMBER_ID_REQUIRED
is no error at all: it brings the name with which to ask again, so that members that die before their first answer
leave nothing behind (KIP-394).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ottla.client.consumer.coordinator.generation import NO_GENERATION, Generation
from ottla.client.consumer.coordinator.refusals import TRANSIENT, is_elsewhere, is_fatal
from ottla.client.consumer.group import requests
from ottla.client.consumer.group.membership.classic_member import Assigned, ClassicMember
from ottla.client.consumer.group.membership.farewell import LEFT, POLL_EXPIRED, WHERE, Word
from ottla.client.consumer.group.membership.member_state import (
    SEEN_BY_COORDINATOR,
    E,
    S,
)
from ottla.client.consumer.group.membership.standing import Standing
from ottla.client.consumer.group.membership.step import Assign, Disconnect, End, Find, Send, Step, Wait
from ottla.errors import ErrorCode, name_of
from ottla.model import FOREVER, Node
from ottla.protocol.messages.heartbeat import HeartbeatRequest
from ottla.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from ottla.protocol.messages.sync_group import SyncGroupRequest


class ClassicMembership(ClassicMember):
    """A member between its user and the coordinator."""

    # What the user's thread says and asks.

    def subscribe(self) -> None:
        """The user wants to be a member."""
        if not self.active:
            self.active = True
            self._rejoin_reason = self._rejoin_reason or ""

    @property
    def must_prepare(self) -> bool:
        """Whether a rebalance waits for this member to give partitions up and say `join`."""
        return self.active and self._rejoin_reason is not None and self._protocols is None and self._assigned is None

    @property
    def standing(self) -> Standing:
        """Whether this member may commit."""
        if self.state is S.STABLE:
            return Standing.GOOD
        return Standing.OUTSIDE if self.state is S.UNJOINED else Standing.REBALANCING

    def join(self, protocols: Sequence[JoinGroupRequestProtocol], generation: Generation) -> None:
        """What must be given up is given up: JoinGroup may go out, with these subscriptions.

        Not so when the `generation` that it was given up in is over: then there is more to give up.
        """
        if generation == self.generation:
            self._protocols = protocols

    def take_assigned(self) -> Assigned | None:
        """What was assigned and not taken yet."""
        assigned, self._assigned = self._assigned, None
        return assigned

    def prepare_leaving(self) -> None:
        """The user goes; a classic member says so when everything is given up."""

    def leave(self, reason: str, now: float, *, silently: bool = False, until: float = FOREVER) -> None:
        """Leave the group, and forget that one was in it.

        `silently`: without a word to the coordinator; `until`: how long the word is said again where it is not heard.
        """
        if not silently and self._config.group_instance_id is None:
            if self.generation.member_id:
                self._say_farewell(self.generation.member_id, reason, now, busy=self._is_held(), until=until)
            elif self._in_flight is not None:
                self._farewell.await_name(self._in_flight, now)
        if not self.generation.is_none or self.state is not S.UNJOINED:
            self._tell(logging.INFO, f"Resetting generation and member id due to: {LEFT}")
        self._move(E.LEFT)
        self._reset_session(NO_GENERATION)
        self._rejoin_reason = None
        self._failure, self._fenced = None, False

    def unsubscribe(self) -> None:
        """The user wants to be no member any longer; `leave` comes with it."""
        self.active = False
        self._rejoin_reason = None

    # What the heartbeat's thread asks and reports.

    def decide(self, now: float, coordinator: Node | None) -> Step:
        """The next thing to do."""
        if self._farewell.is_due:
            return self._farewell.decide(now, coordinator)
        if self.closing:
            wait = self._farewell.wait(now)
            return Wait(wait) if wait > 0 else End()
        if not self.active:
            return Wait(FOREVER)
        if self.state in SEEN_BY_COORDINATOR and self.heartbeat.poll_expired(now):
            self._leave_idle_user(now)
            return self.decide(now, coordinator)
        if self.heartbeat.session_expired(now) and self.state is S.STABLE:
            return self._give_coordinator_up(now)
        if self._in_flight is not None:
            return Wait(self._next_alarm(now))
        if now < self._retry.at:
            return Wait(min(self._retry.at - now, self._next_alarm(now)))
        return self._decide_next(now, coordinator)

    def answered(self, sent: Send, message: Any, now: float) -> str | None:
        """An answer has come; returns why to look for another coordinator, when that is to be done."""
        if self._farewell.heard(sent):
            return self._hear_farewell(message, now)
        if self._farewell.is_named_by(sent) and message.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self._say_farewell(message.member_id, "the member left before it had joined", now)
        if sent is not self._in_flight:
            return None  # of an earlier life
        self._in_flight = None
        self._retry.succeeded()
        return ANSWERS[type(sent.message)](self, sent, message, now)

    def unanswered(self, sent: Send, error: Exception, now: float) -> str | None:
        """The request was lost with its connection, or could not be sent; returns as `answered` does."""
        if self._farewell.heard(sent):
            self._farewell.failed("LeaveGroup request", error, now)
            return str(error)
        self._farewell.is_named_by(sent)
        if sent is not self._in_flight:
            return None  # of an earlier life, and perhaps ended by ourselves
        self._in_flight = None
        if isinstance(sent.message, HeartbeatRequest):
            self._try_later(now)
        else:
            self._retry_join(f"{type(sent.message).__name__.removesuffix('Request')} failed: {error}", now)
        return str(error)

    def share(self, answer: JoinGroupResponse, assignments: Mapping[str, bytes], counts: Mapping[str, int]) -> None:
        """The leader has shared the partitions out; `counts` is what it knew of the group's topics."""
        if self._to_assign is not answer:
            return
        self._to_assign = None
        self._counts = counts
        self._tell(logging.DEBUG, f"Sending leader SyncGroup for generation {self.generation}")
        self._sync = requests.sync(self._config, self.generation, assignments)

    def _decide_next(self, now: float, coordinator: Node | None) -> Step:
        wants_to_join = self._rejoin_reason is not None and self._protocols is not None
        if coordinator is None:
            seeks = wants_to_join or self.state in SEEN_BY_COORDINATOR
            return Find(self._next_alarm(now)) if seeks else Wait(FOREVER)
        if self._to_assign is not None:
            return Assign(self._to_assign)
        if self._sync is not None:
            message, self._sync = self._sync, None
            return self._send(message, self._join_timeout_ms())
        if wants_to_join and self.state in (S.UNJOINED, S.STABLE):
            return self._send_join()
        if self.state is S.STABLE and self.heartbeat.wait(now) <= 0:
            self.heartbeat.sent(now)
            return self._send(requests.heartbeat(self._config, self.generation), self._config.request_timeout_ms)
        beat = self.heartbeat.wait(now) if self.state is S.STABLE else FOREVER
        return Wait(min(beat, self._next_alarm(now)))

    def _next_alarm(self, now: float) -> float:
        """Seconds until the user's or the coordinator's silence has consequences."""
        return self.heartbeat.poll_wait(now) + 0.001 if self.state in SEEN_BY_COORDINATOR else FOREVER

    def _send(self, message: Any, timeout_ms: int) -> Send:
        self._in_flight = Send(message, timeout_ms, self.generation)
        return self._in_flight

    def _send_join(self) -> Send:
        assert self._protocols is not None
        self._tell(logging.INFO, "(Re-)joining group")
        self._move(E.JOIN_SENT)
        self.heartbeat.stop()
        # Whoever asks for another rebalance from now on asks for one after this.
        reason, self._rejoin_reason = self._rejoin_reason, None
        message = requests.join(self._config, self.generation, self._protocols, reason or None)
        return self._send(message, self._join_timeout_ms())

    def _join_timeout_ms(self) -> int:
        # The coordinator may hold the answer until the slowest member has come, which is the rebalance timeout.
        return max(self._config.request_timeout_ms, self._config.max_poll_interval_ms + 5000)

    def _joined(self, sent: Send, answer: JoinGroupResponse, now: float) -> str | None:
        code = answer.error_code
        if code == ErrorCode.MEMBER_ID_REQUIRED:
            self._move(E.FAILED)
            self.generation = Generation(member_id=answer.member_id)
            self.request_rejoin(f"the coordinator named this member {answer.member_id}")
            return None
        if code:
            return self._join_refused("JoinGroup", sent, code, now)
        self._move(E.JOINED)
        self.generation = Generation(answer.generation_id, answer.member_id, answer.protocol_name)
        self._tell(logging.INFO, f"joined: {self.generation}")
        self.heartbeat.start(now)
        self._counts = None
        if answer.leader == answer.member_id:
            self._to_assign = answer
        else:
            self._sync = requests.sync(self._config, self.generation, {})
        return None

    def _synced(self, sent: Send, answer: Any, now: float) -> str | None:
        if answer.error_code == ErrorCode.REBALANCE_IN_PROGRESS:
            text = f"the group rebalances again before generation {sent.generation} had its partitions: joining again"
            self._tell(logging.INFO, text)
            self._move(E.FAILED)
            self.heartbeat.stop()
            self._rejoin_reason = "the group began another rebalance"
            return None
        if answer.error_code:
            return self._join_refused("SyncGroup", sent, answer.error_code, now)
        self._move(E.SYNCED)
        self._tell(logging.INFO, f"knows what it is given: {self.generation}")
        self._assigned = Assigned(self.generation, answer.assignment, self._counts)
        self._protocols = None
        return None

    def _join_refused(self, api: str, sent: Send, code: int, now: float) -> str | None:
        if code == ErrorCode.UNKNOWN_MEMBER_ID or code == ErrorCode.ILLEGAL_GENERATION:
            text = f"{api} as {sent.generation}: {name_of(code)}; joining anew"
            self._tell(logging.INFO, text)
            self._reset_generation(code, api.upper().replace("GROUP", "_GROUP"))
            return None
        if is_fatal(code):
            self._refuse(code)
            return None
        self._retry_join(f"{api} as {sent.generation}: {name_of(code)}", now)
        return is_elsewhere(code)

    def _beat(self, sent: Send, answer: Any, now: float) -> str | None:
        code = answer.error_code
        if not code:
            self.heartbeat.received(now)
        elif code == ErrorCode.REBALANCE_IN_PROGRESS:
            self.heartbeat.received(now)  # it lives, and so do we
            if self._rejoin_reason is None:
                self.request_rejoin("group is already rebalancing")
        elif code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION):
            instance = self._config.group_instance_id
            text = f"Attempt to heartbeat with {sent.generation} and group instance id {instance} failed due to "
            self._tell(logging.INFO, f"{text}{name_of(code)}, resetting generation")
            self._reset_generation(code, "HEARTBEAT")
        elif is_fatal(code):
            self._refuse(code)
        else:
            self._tell(logging.INFO, f"Attempt to heartbeat failed: {name_of(code)}")
            self._try_later(now)
            return is_elsewhere(code)
        return None

    def _say_farewell(
        self, member: str, reason: str, now: float, *, busy: bool = False, until: float = FOREVER
    ) -> None:
        message = requests.leave(self._config.group_id or "", member, reason)
        text = f"{member} leaves, by LeaveGroup to {WHERE}: {reason}"
        self._farewell.say(Word(message, text, reason), now, busy=busy, until=until)

    def _hear_farewell(self, answer: Any, now: float) -> str | None:
        code = answer.error_code or next((m.error_code for m in answer.members), 0)
        if code in TRANSIENT:
            self._farewell.failed("LeaveGroup request", name_of(code), now)
            return is_elsewhere(code)
        level = logging.INFO if code and code != ErrorCode.UNKNOWN_MEMBER_ID else logging.DEBUG
        what = f"failed with error: {name_of(code)}" if code else "returned successfully"
        self._tell(level, f"LeaveGroup request {what}")
        return None

    def _leave_idle_user(self, now: float) -> None:
        self._tell(logging.WARNING, POLL_EXPIRED)
        self.leave("poll() was not called for max.poll.interval.ms", now)
        self.request_rejoin(LEFT)

    def _give_coordinator_up(self, now: float) -> Step:
        self._in_flight = None
        self.heartbeat.received(now)
        self.heartbeat.hurry(now)
        return Disconnect("no heartbeat was answered for a whole session", find_anew=True)

    def _is_held(self) -> bool:
        """Whether the coordinator may keep us waiting for an answer."""
        return self._in_flight is not None and isinstance(self._in_flight.message, JoinGroupRequest | SyncGroupRequest)


ANSWERS: Mapping[type, Callable[[ClassicMembership, Send, Any, float], str | None]] = {
    JoinGroupRequest: ClassicMembership._joined,
    SyncGroupRequest: ClassicMembership._synced,
    HeartbeatRequest: ClassicMembership._beat,
}
