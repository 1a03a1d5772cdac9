"""A member of the classic protocol: its state and generation, and how they are lost.

What is said to the coordinator, and what its answers mean, is in `ClassicMembership`.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ottla.client.consumer.config import ConsumerConfig
from ottla.client.consumer.coordinator.generation import NO_GENERATION, Generation
from ottla.client.consumer.coordinator.refusals import failure_of
from ottla.client.consumer.group.heartbeat import Heartbeat
from ottla.client.consumer.group.membership.farewell import Farewell
from ottla.client.consumer.group.membership.member_state import (
    SEEN_BY_COORDINATOR,
    TRANSITIONS,
    E,
    MemberEvent,
    MemberState,
    S,
)
from ottla.client.consumer.group.membership.retry import Retry
from ottla.client.consumer.group.membership.step import Send
from ottla.client.runtime.backoff import ExponentialBackoff
from ottla.errors import ErrorCode, name_of
from ottla.protocol.messages.heartbeat import HeartbeatRequest
from ottla.protocol.messages.join_group import JoinGroupRequestProtocol, JoinGroupResponse
from ottla.protocol.messages.sync_group import SyncGroupRequest


class Assigned(NamedTuple):
    """What a member was given, and what the leader knew when it gave it."""

    generation: Generation
    data: Any
    counts: Mapping[str, int] | None
    """The group's topics with their numbers of partitions; None for a member that does not lead."""


class ClassicMember:
    """What both threads know of a member."""

    def __init__(self, config: ConsumerConfig, heartbeat: Heartbeat, backoff: ExponentialBackoff) -> None:
        self.state = MemberState.UNJOINED
        self.generation = NO_GENERATION
        self.heartbeat = heartbeat
        self.active = False
        """Whether the user is subscribed."""
        self.closing = False
        self.news: list[tuple[int, str]] = []
        self._config = config
        self._rejoin_reason: str | None = None
        self._protocols: Sequence[JoinGroupRequestProtocol] | None = None
        self._in_flight: Send | None = None
        self._farewell = Farewell(config, backoff, self.news)
        self._to_assign: JoinGroupResponse | None = None
        self._sync: SyncGroupRequest | None = None
        self._counts: Mapping[str, int] | None = None
        self._assigned: Assigned | None = None
        self._failure: Exception | None = None
        self._fenced = False
        self._retry = Retry(backoff)

    def request_rejoin(self, reason: str, *, resubscribed: bool = False) -> None:
        """Have the member join anew, whatever its state; once `resubscribed`, not with what it would have said before."""
        self._tell(logging.INFO, f"wants to join: {reason}")
        self._rejoin_reason = reason
        if resubscribed:
            self._protocols = None

    def take_failure(self) -> Exception | None:
        """What the user must hear; it is heard once, but for having been fenced, which does not pass."""
        failure = self._failure
        if not self._fenced:
            self._failure = None
        return failure

    def take_news(self) -> list[tuple[int, str]]:
        """What was not told yet."""
        news = self.news[:]
        self.news.clear()
        return news

    def fail(self, error: Exception) -> None:
        """Something went wrong that the user must hear; joining begins anew at the next `poll`."""
        self._failure = error
        self._move(E.FAILED)
        self._in_flight = self._to_assign = self._sync = None
        self._protocols = None
        self.heartbeat.stop()
        self._rejoin_reason = self._rejoin_reason if self._rejoin_reason is not None else ""

    def check(self) -> None:
        """What holds at any time."""
        assert self._sync is None or self.state is S.COMPLETING_REBALANCE
        assert self._to_assign is None or self.state is S.COMPLETING_REBALANCE
        assert self.state not in SEEN_BY_COORDINATOR or not self.generation.is_none
        assert self._in_flight is None or not isinstance(self._in_flight.message, HeartbeatRequest) or self.active
        assert self.state is not S.PREPARING_REBALANCE or self._in_flight is not None

    def _refuse(self, code: int) -> None:
        """The coordinator will not have this member as it is."""
        self.fail(failure_of(code, self._config))
        self._fenced = code == ErrorCode.FENCED_INSTANCE_ID
        if self._fenced:
            self._reset_session(NO_GENERATION)

    def _reset_generation(self, code: int, api: str) -> None:
        """The coordinator does not know us: what was ours is lost."""
        keeps_name = code == ErrorCode.ILLEGAL_GENERATION
        what = "generation" if keeps_name else "generation and member id"
        why = f"encountered {name_of(code)} from {api} response"
        self._tell(logging.INFO, f"Resetting {what} due to: {why}")
        self._move(E.FAILED)
        self._reset_session(Generation(member_id=self.generation.member_id) if keeps_name else NO_GENERATION)
        self.request_rejoin(why)

    def _retry_join(self, why: str, now: float) -> None:
        self._tell(logging.INFO, why)
        self._move(E.FAILED)
        self.heartbeat.stop()
        self._rejoin_reason = self._rejoin_reason if self._rejoin_reason is not None else why
        self._try_later(now)

    def _try_later(self, now: float) -> None:
        self.heartbeat.hurry(self._retry.failed(now))

    def _reset_session(self, generation: Generation) -> None:
        self.generation = generation
        self._in_flight = self._to_assign = self._sync = self._protocols = self._assigned = self._counts = None
        self._retry.skip_wait()
        self.heartbeat.stop()

    def _move(self, event: MemberEvent) -> None:
        self.state = TRANSITIONS[self.state, event]

    def _tell(self, level: int, text: str) -> None:
        self.news.append((level, text))
