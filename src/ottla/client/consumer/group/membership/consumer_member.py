"""A member of KIP-848: its state, its epoch and what it is to have, and how they are lost.

What is said to the coordinator, and what its answers mean, is in `ConsumerMembership`.
"""

from __future__ import annotations

import logging
from typing import NamedTuple

from ottla.client.consumer.config import ConsumerConfig
from ottla.client.consumer.coordinator.generation import NO_GENERATION, Generation
from ottla.client.consumer.coordinator.refusals import NEEDS_NEW_PROTOCOL, is_fatal
from ottla.client.consumer.group.heartbeat import Heartbeat
from ottla.client.consumer.group.membership.consumer_state import (
    ACTIVE,
    IN_GROUP,
    SILENT,
    TRANSITIONS,
    ConsumerEvent,
    E,
    S,
)
from ottla.client.consumer.group.membership.farewell import POLL_EXPIRED, WHERE, Farewell, Word
from ottla.client.consumer.group.membership.heartbeat_fields import (
    JOINING,
    HeartbeatFields,
    SubscribedTopics,
    TopicIdPartition,
)
from ottla.client.consumer.group.membership.retry import Retry
from ottla.client.consumer.group.membership.standing import Standing
from ottla.client.consumer.group.membership.step import Send
from ottla.client.runtime.backoff import ExponentialBackoff
from ottla.errors import ErrorCode, KafkaError, UnsupportedVersionError, name_of
from ottla.model import FOREVER

NOTHING: frozenset[TopicIdPartition] = frozenset()


class TargetAssignment(NamedTuple):
    """What a member is to have."""

    life: int
    """Grows each time the member is out of the group: what was to be had before is nothing any more."""
    partitions: frozenset[TopicIdPartition]


class ConsumerMember:
    """What both threads know of a member."""

    def __init__(
        self, config: ConsumerConfig, heartbeat: Heartbeat, backoff: ExponentialBackoff, member_id: str
    ) -> None:
        self.state = S.UNSUBSCRIBED
        self.member_id = member_id
        """Of the member's own making (KIP-1082), and kept for its whole life."""
        self.epoch = JOINING
        self.life = 0
        self.last_generation = NO_GENERATION
        """The member in its newest epoch, until it leaves of its own will: also once the place is lost."""
        self.heartbeat = heartbeat
        self.active = False
        """Whether the user is subscribed."""
        self.closing = False
        self.news: list[tuple[int, str]] = []
        self._config = config
        self._fields = HeartbeatFields(config)
        self._farewell = Farewell(config, backoff, self.news)
        self._retry = Retry(backoff)
        self._wanted: SubscribedTopics | None = None
        self._target: TargetAssignment | None = None
        self._owned = NOTHING
        self._must_tell = False
        self._known = False
        self._blocks_itself = False
        """Whether a static member may still be in the group under its name, which the coordinator lets nobody have twice."""
        self._released = True
        self._idle = False
        self._paused = False
        self._in_flight: Send | None = None
        self._failure: Exception | None = None

    @property
    def generation(self) -> Generation:
        """The member and its epoch, for commits and transactions."""
        return Generation(self.epoch, self.member_id) if self.epoch > JOINING else NO_GENERATION

    @property
    def standing(self) -> Standing:
        """Whether this member may commit."""
        return Standing.GOOD if self.state in IN_GROUP and self.epoch > JOINING else Standing.OUTSIDE

    @property
    def must_release(self) -> bool:
        """Whether the user's thread is to know that everything is lost, and say `released`."""
        return not self._released and (self.state in (S.FENCED, S.STALE) or self._idle)

    @property
    def target(self) -> TargetAssignment | None:
        """What the user's thread is to bring about; None where there is nothing to do."""
        return self._target if self.state is S.RECONCILING else None

    def take_failure(self) -> Exception | None:
        """What the user must hear: each time where it is fatal, once otherwise."""
        failure = self._failure
        if self.state is not S.FATAL:
            self._failure = None
        return failure

    def take_news(self) -> list[tuple[int, str]]:
        """What was not told yet."""
        news = self.news[:]
        self.news.clear()
        return news

    def fail(self, error: Exception) -> None:
        """Something went wrong that the user must hear; what may pass is tried again at the next `poll`."""
        if isinstance(error, UnsupportedVersionError):
            error = UnsupportedVersionError(f"{NEEDS_NEW_PROTOCOL}: {error}")
        elif not isinstance(error, KafkaError) or not is_fatal(error.code):
            self._failure, self._paused, self._in_flight = error, True, None
            self._fields.reset()
            return
        if (self.state, E.FAILED) in TRANSITIONS:
            self._failure = error
            self._move(E.FAILED)
            self._reset()

    def check(self) -> None:
        """What holds at any time."""
        assert (self.epoch > JOINING) <= (self.state in IN_GROUP)
        assert self.state not in (S.RECONCILING, S.ACKNOWLEDGING, S.STABLE) or self._target is not None
        assert self.state is not S.STABLE or (self._target is not None and self._owned == self._target.partitions)
        assert self.state not in SILENT or (self._in_flight is None and self._target is None and not self._owned)
        assert self._farewell.is_due or self.state is not S.LEAVING
        assert not self._must_tell or self.state in IN_GROUP

    def _fence(self, code: int, now: float) -> None:
        """The coordinator has put this member out: what was its is lost."""
        self._tell(
            logging.INFO,
            f"Member {self.member_id} with epoch {self.epoch} was fenced by the coordinator: {name_of(code)}; it gives "
            f"up all its partitions as lost and joins again",
        )
        if self.state is S.JOINING:
            self._retry.failed(now)
        self._blocks_itself = code == ErrorCode.FENCED_MEMBER_EPOCH and self._config.group_instance_id is not None
        if (self.state, E.FENCED) in TRANSITIONS:  # who leaves anyway is gone now
            self._move(E.FENCED)
        self._reset()

    def _leave_idle_user(self, now: float) -> None:
        self._tell(logging.WARNING, POLL_EXPIRED)
        self._say_farewell("poll() was not called for max.poll.interval.ms", now)
        self._move(E.IDLE)
        self._idle = True
        self._reset()

    def _say_farewell(self, reason: str, now: float, until: float = FOREVER) -> None:
        text = f"Member {self.member_id} sending leave heartbeat to coordinator {WHERE} due to {reason}"
        self._farewell.say(Word(self._fields.farewell(self.member_id), text, reason), now, until=until)

    def _reset(self) -> None:
        self.life += 1
        self.epoch = JOINING
        self._released = self._known = self._must_tell = False
        self._target, self._owned, self._in_flight = None, NOTHING, None
        self._fields.reset()
        self.heartbeat.stop()

    def _is_watched(self) -> bool:
        """Whether the user must go on polling, or leave."""
        return self._known and self.state in ACTIVE

    def _move(self, event: ConsumerEvent) -> None:
        before, self.state = self.state, TRANSITIONS[self.state, event]
        if before is not self.state:
            self._tell(
                logging.INFO,
                f"Member {self.member_id} with epoch {self.epoch} transitioned from {before.name} to {self.state.name}.",
            )

    def _tell(self, level: int, text: str) -> None:
        self.news.append((level, text))
