"""A member that speaks the protocol of KIP-848: ConsumerGroupHeartbeat, to join, to stay, to tell what it has, to leave.

The heartbeat's thread asks `decide` and reports back; the user's thread says what it wants, brings about what it is to
have (`target`), and says so (`acknowledge`). Whoever calls holds the coordinator's lock, which is held for nothing else.

    UNSUBSCRIBED ─► JOINING ── assigned ──► RECONCILING ── reconciled ──► ACKNOWLEDGING ── told ──► STABLE
        ▲             ▲                         ▲ └──────── assigned ◄──────────┴───────────────────────┘
        │             ├── released ── FENCED ◄──┤ put out by the coordinator
        │             └── released ── STALE ◄── LEAVING ◄── the user does not poll
        └── LEAVING ◄── PREPARE_LEAVING ◄── the user goes                          FATAL ◄── refused
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from ottla.client.consumer.coordinator.generation import NO_GENERATION
from ottla.client.consumer.coordinator.refusals import TRANSIENT, failure_of, is_elsewhere, is_fatal
from ottla.client.consumer.group.membership.consumer_member import ConsumerMember, TargetAssignment
from ottla.client.consumer.group.membership.consumer_state import ACTIVE, IN_GROUP, SILENT, E, S
from ottla.client.consumer.group.membership.heartbeat_fields import JOINING, SubscribedTopics, TopicIdPartition
from ottla.client.consumer.group.membership.step import End, Find, Send, Step, Wait
from ottla.errors import ErrorCode, name_of
from ottla.model import FOREVER, Node
from ottla.protocol.messages.join_group import JoinGroupResponse

GOING = frozenset({S.LEAVING, S.UNSUBSCRIBED, S.STALE})
"""Where a farewell that was not heard is said again."""
OUT = frozenset({ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID})


class ConsumerMembership(ConsumerMember):
    """A member between its user and the coordinator."""

    # What the user's thread says and asks.

    def subscribe(self) -> None:
        """The user polls, and wants to be a member."""
        self._paused = False
        self.active = True
        if self.state is S.UNSUBSCRIBED:
            self._released = True  # there was nothing to be lost
            self._move(E.SUBSCRIBED)

    def want(self, wanted: SubscribedTopics) -> None:
        """What the user wants to read, which is told at once where it is news."""
        self._wanted = wanted

    def request_rejoin(self, reason: str, *, resubscribed: bool = False) -> None:
        """The coordinator decides when to share out anew; there is nothing to ask of it."""
        self._tell(
            logging.WARNING, "enforce_rebalance() does nothing with group.protocol=consumer: the coordinator decides"
        )

    def released(self) -> None:
        """The user's thread has given up what was lost."""
        self._released = True
        if self.state in (S.FENCED, S.STALE):
            self._move(E.RELEASED)

    def acknowledge(self, target: TargetAssignment, partitions: frozenset[TopicIdPartition]) -> None:
        """The user's thread has brought about as much of `target` as it could: `partitions` are what it has now."""
        if target.life != self.life or self.state not in IN_GROUP:
            return
        self._owned, self._must_tell = partitions, True
        if self.state is S.RECONCILING:
            self._move(E.RECONCILED)

    def prepare_leaving(self) -> None:
        """The user goes; the listener is told first, and may still commit."""
        if self.state not in (S.PREPARE_LEAVING, S.UNSUBSCRIBED, S.LEAVING):
            self._move(E.PREPARED)

    def leave(self, reason: str, now: float, *, silently: bool = False, until: float = FOREVER) -> None:
        """Leave the group, and forget that one was in it.

        `silently`: without a word to the coordinator; `until`: how long the word is said again where it is not heard.
        """
        if self.state is S.LEAVING:
            self._idle = False  # it goes already, and stays away
        elif self._known and not silently:
            self._say_farewell(reason, now, until)
            self._move(E.LEFT)
        elif self.state is not S.UNSUBSCRIBED:
            self._move(E.GONE)
        self._reset()
        self._wanted, self._failure, self._idle, self._released = None, None, False, True
        self.last_generation = NO_GENERATION
        self._retry.skip_wait()

    def unsubscribe(self) -> None:
        """The user wants to be no member any longer; `leave` comes with it."""
        self.active = False

    # What the heartbeat's thread asks and reports.

    def decide(self, now: float, coordinator: Node | None) -> Step:
        """The next thing to do."""
        if self._farewell.is_due:
            if self.state in GOING:
                return self._go(now, coordinator)
            self._farewell.cancel()  # it has joined again under the same name
        if self.closing:
            return Wait(FOREVER) if self._farewell.wait(now) else End()
        if not self.active or self._paused or self.state in SILENT or self._wanted is None:
            return Wait(FOREVER)
        if self._is_watched() and self.heartbeat.poll_expired(now):
            self._leave_idle_user(now)
            return self.decide(now, coordinator)
        if self._in_flight is not None:
            return Wait(self._next_alarm(now))
        if now < self._retry.at:
            return Wait(min(self._retry.at - now, self._next_alarm(now)))
        if coordinator is None:
            return Find(self._next_alarm(now))
        if self._is_due(now):
            return self._send(now)
        return Wait(min(self.heartbeat.wait(now), self._next_alarm(now)))

    def answered(self, sent: Send, message: Any, now: float) -> str | None:
        """An answer has come; returns why to look for another coordinator, when that is to be done."""
        if self._farewell.heard(sent):
            return self._hear_farewell(message.error_code, now)
        if sent is not self._in_flight:
            return None  # of an earlier life
        self._in_flight = None
        if sent.message.member_epoch < JOINING and is_elsewhere(message.error_code) is None:
            self._blocks_itself = False  # it does so no more, or never did
            return None
        if message.error_code:
            return self._refused(sent, message, now)
        self._retry.succeeded()
        self._hear(message, now)
        return None

    def unanswered(self, sent: Send, error: Exception, now: float) -> str | None:
        """The request was lost with its connection, or could not be sent; returns as `answered` does."""
        if self._farewell.heard(sent):
            if self.state in GOING:
                self._farewell.failed("leave heartbeat", error, now)
            return str(error)
        if sent is not self._in_flight:
            return None
        self._in_flight = None
        self._tell(logging.INFO, f"ConsumerGroupHeartbeat failed: {error}")
        self._blocks_itself |= self.state is S.JOINING and self._config.group_instance_id is not None
        self._try_later(now)
        return str(error)

    def share(self, answer: JoinGroupResponse, assignments: Mapping[str, bytes], counts: Mapping[str, int]) -> None:
        """Nobody leads here: the coordinator shares out."""

    def _go(self, now: float, coordinator: Node | None) -> Step:
        was_in_group = self.state is S.LEAVING
        step = self._farewell.decide(now, coordinator)
        if was_in_group and not self._farewell.is_due:
            self._move(E.GONE_IDLE if self._idle else E.GONE)
            self._idle = False
            if self.state is S.STALE and self._released:
                self._move(E.RELEASED)
            elif self.state is S.UNSUBSCRIBED and self.active:  # the user has thought better of it
                self._move(E.SUBSCRIBED)
        return step

    def _hear_farewell(self, code: int, now: float) -> str | None:
        if code in TRANSIENT and self.state in GOING:
            self._farewell.failed("leave heartbeat", name_of(code), now)
            return is_elsewhere(code)
        self._tell(logging.DEBUG, f"leave heartbeat failed with error: {name_of(code)}" if code else "has left")
        return None

    def _is_due(self, now: float) -> bool:
        if self.state is S.JOINING and self.epoch == JOINING:
            return True
        assert self._wanted is not None
        return self._must_tell or self._fields.is_news(self._wanted) or self.heartbeat.wait(now) <= 0

    def _send(self, now: float) -> Send:
        assert self._wanted is not None
        if self.state is S.JOINING and self._blocks_itself:
            message = self._fields.farewell(self.member_id)
            self._in_flight = Send(message, self._config.request_timeout_ms, self.generation)
            return self._in_flight
        message = self._fields.beat(self.member_id, self.epoch, self._wanted, self._owned)
        self._known, self._must_tell = True, False
        self.heartbeat.sent(now)
        if self.state is S.JOINING:
            self._tell(logging.INFO, "(Re-)joining group")
        if self.state is S.ACKNOWLEDGING:
            assert self._target is not None
            self._move(E.ALL_TOLD if self._owned == self._target.partitions else E.PART_TOLD)
        generation = self.generation
        self._in_flight = Send(message, self._config.request_timeout_ms, generation)
        return self._in_flight

    def _hear(self, message: Any, now: float) -> None:
        """All is well, and there may be something new to have."""
        self.member_id = message.member_id or self.member_id
        self.heartbeat.interval = (message.heartbeat_interval_ms / 1000) or self.heartbeat.interval
        joined = self.epoch == JOINING
        if self.state not in ACTIVE:  # on its way out
            self.epoch = message.member_epoch if self._known else JOINING
            return
        self.epoch = message.member_epoch
        self.last_generation = self.generation
        if joined:
            self._tell(logging.INFO, f"joined, with member epoch {self.epoch} as {self.member_id}")
            self.heartbeat.start(now)
        else:
            self.heartbeat.received(now)
        if message.assignment is not None or joined:
            self._is_given(message.assignment.topic_partitions if message.assignment is not None else ())

    def _is_given(self, assignment: Any) -> None:
        partitions = frozenset((each.topic_id, partition) for each in assignment for partition in each.partitions)
        if self._target is None or partitions != self._target.partitions:
            self._target = TargetAssignment(self.life, partitions)
            self._move(E.ASSIGNED)

    def _refused(self, sent: Send, message: Any, now: float) -> str | None:
        code = message.error_code
        # A group that is not there any more has been deleted meanwhile, or has gone over to the classic protocol.
        is_gone = code == ErrorCode.GROUP_ID_NOT_FOUND and sent.message.member_epoch != JOINING
        if code in OUT or is_gone:
            self._fence(code, now)
        elif code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:  # until somebody permits it, or the subscription changes
            self._failure = failure_of(code, self._config, message.error_message)
            self._try_later(now)
        elif is_fatal(code):
            self._tell(logging.ERROR, f"ConsumerGroupHeartbeat failed: {name_of(code)}: {message.error_message}")
            self.fail(failure_of(code, self._config, message.error_message))
        else:
            self._tell(logging.INFO, f"ConsumerGroupHeartbeat failed: {name_of(code)}")
            self._try_later(now)
        return is_elsewhere(code)

    def _try_later(self, now: float) -> None:
        """Then everything is said again, for it may not have been heard."""
        self._fields.reset()
        self.heartbeat.hurry(self._retry.failed(now))

    def _next_alarm(self, now: float) -> float:
        """Seconds until the user's silence has consequences."""
        return self.heartbeat.poll_wait(now) + 0.001 if self._is_watched() else FOREVER
