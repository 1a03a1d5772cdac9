"""What a consumer wants, which partitions it has, and how far it is in each.

Pure.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Collection, Iterable, Mapping
from enum import Enum

from msgspec import Struct

from ottla.client.consumer.loop import Loop
from ottla.client.consumer.records import RecordSlice
from ottla.client.metadata.cluster import NO_ID, Cluster
from ottla.errors import IllegalStateError
from ottla.model import FOREVER, OffsetAndMetadata, TopicPartition


class SubscriptionType(Enum):
    """How partitions come to a consumer."""

    NONE = "nothing"
    TOPICS = "subscribe() with topics"
    PATTERN = "subscribe() with a pattern"
    BROKER_PATTERN = "subscribe() with a pattern for the broker"
    PARTITIONS = "assign()"


BY_GROUP = frozenset({SubscriptionType.TOPICS, SubscriptionType.PATTERN, SubscriptionType.BROKER_PATTERN})


class TopicPartitionState(Struct):
    """One assigned partition."""

    position: int | None = None
    """The offset to read next; None until it is known."""
    epoch: int = -1
    """The leader's epoch of the record before the position, -1 when unknown."""
    awaits_committed: bool = False
    """Whether the committed offset is to be looked up before anything else is tried."""
    reset_to: int | None = None
    """The ListOffsets timestamp whose offset becomes the position; None when no reset is due."""
    paused: bool = False
    revoking: bool = False
    """About to be given up, with its offset being committed: what is buffered is not handed out any more."""
    topic_id: object = NO_ID
    """The id of the topic that the position belongs to."""
    end: int | None = None
    """Nothing at or above this offset is read; None: no bound."""
    retry_at: float = -FOREVER
    """Not to be asked for before this moment."""
    readable_to: int | None = None
    """The end of what may be read, as last heard of: the high watermark, or the last stable offset."""
    log_start: int | None = None
    """The first offset that is kept, as last heard of."""

    def fetchable(self, now: float) -> bool:
        """Whether there is something to ask for."""
        if self.position is None or self.held or now < self.retry_at:
            return False
        return self.end is None or self.position < self.end

    @property
    def held(self) -> bool:
        """Whether nothing may be handed out for now."""
        return self.paused or self.revoking

    def is_lost(self) -> bool:
        """Whether there is no position and no way to find one."""
        return self.position is None and self.reset_to is None and not self.awaits_committed

    def has_more(self) -> bool:
        """Whether there certainly is something to be read from the position on."""
        return self.position is not None and self.readable_to is not None and self.position < self.readable_to


class SubscriptionState:
    """Subscription, assignment, positions, pauses and bounds."""

    def __init__(self, default_reset: int | None, *, in_group: bool = False) -> None:
        self.default_reset = default_reset
        """The ListOffsets timestamp of `auto.offset.reset`; None for `none`."""
        self.type = SubscriptionType.NONE
        self.topics: frozenset[str] = frozenset()
        """What is subscribed to; of a pattern, what it matches."""
        self.pattern: re.Pattern[str] | None = None
        """Matched here."""
        self.broker_pattern: str | None = None
        """Matched by the broker (KIP-848)."""
        self.loop = Loop()
        """What a `for` over the consumer is about to hand out."""
        self.is_returning = False
        """True from the start of a `poll` until its records are with the caller; stays so where an exception ended it.

        The last statement before `poll` returns clears it. CPython runs signal handlers only after calls and at loops, not
        after an assignment, so that no signal can raise between it and the caller's own assignment.
        """
        self.rollbacks = 0
        """The number of polls whose positions were restored; what the fetcher buffered before does not fit any more."""
        self._before_last_poll: dict[TopicPartition, tuple[int, int]] = {}
        """The position and epoch from before the records that the last `poll` returned, of their partitions."""
        self._committed_by_user: dict[TopicPartition, tuple[int, int]] = {}
        """What the user has committed since the last `poll` began."""
        self._in_group = in_group
        self._states: OrderedDict[TopicPartition, TopicPartitionState] = OrderedDict()
        self.assignments = 0
        """How often something was assigned."""

    @property
    def by_group(self) -> bool:
        """Whether the group gives this consumer its partitions."""
        return self.type in BY_GROUP

    def become(self, kind: SubscriptionType) -> None:
        """Get partitions in this way from now on; IllegalStateError when they come in another."""
        if self.type not in (SubscriptionType.NONE, kind):
            raise IllegalStateError(
                f"this consumer has its partitions by {self.type.value}: call unsubscribe() before {kind.value}"
            )
        self.type = kind

    def subscribe(self, topics: Iterable[str]) -> None:
        self.become(SubscriptionType.TOPICS)
        self.topics = frozenset(topics)

    def subscribe_pattern(self, pattern: re.Pattern[str]) -> None:
        """Want the topics whose whole names `pattern` matches."""
        self.become(SubscriptionType.PATTERN)
        if self.pattern != pattern:
            self.pattern, self.topics = pattern, frozenset()

    def subscribe_broker_pattern(self, pattern: str) -> None:
        """Want what the broker finds to match `pattern`."""
        self.become(SubscriptionType.BROKER_PATTERN)
        self.broker_pattern = pattern

    def match(self, cluster: Cluster, *, exclude_internal: bool) -> None:
        """Take in which topics there are for the pattern."""
        pattern = self.pattern
        if pattern is not None:
            self.topics = frozenset(
                name
                for name, info in cluster.topics.items()
                if pattern.fullmatch(name) and not (exclude_internal and info.internal)
            )

    def unsubscribe(self) -> None:
        """Want nothing and have nothing."""
        self.type, self.topics, self.pattern, self.broker_pattern = SubscriptionType.NONE, frozenset(), None, None
        self._states = OrderedDict()
        self._before_last_poll = {}

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Have exactly these; those that stay keep their positions."""
        self.assignments += 1
        states = self._states
        self._states = OrderedDict((tp, states.get(tp) or self._fresh()) for tp in dict.fromkeys(partitions))

    def assigned(self) -> Collection[TopicPartition]:
        """What is assigned, in the order it was."""
        return self._states.keys()

    def states(self) -> dict[TopicPartition, TopicPartitionState]:
        """All assigned partitions with their states, in a copy."""
        return dict(self._states)

    def state(self, tp: TopicPartition) -> TopicPartitionState:
        """One partition's state; IllegalStateError when it is not assigned."""
        state = self._states.get(tp)
        if state is None:
            raise IllegalStateError(f"{tp} is not assigned to this consumer; call assign() with it first")
        return state

    def state_or_none(self, tp: TopicPartition) -> TopicPartitionState | None:
        """One partition's state, None when it is no longer assigned."""
        return self._states.get(tp)

    def seek(self, tp: TopicPartition, offset: int, epoch: int = -1) -> None:
        """Read on from `offset`, after a record of `epoch`."""
        state = self.state(tp)
        self._before_last_poll.pop(tp, None)
        self._committed_by_user.pop(tp, None)
        state.position, state.epoch, state.reset_to, state.retry_at = offset, epoch, None, -FOREVER
        state.awaits_committed = False

    def request_reset(self, tp: TopicPartition, timestamp: int) -> None:
        """Look the position up by `timestamp` (EARLIEST, LATEST) before reading on."""
        state = self.state(tp)
        self._before_last_poll.pop(tp, None)
        self._committed_by_user.pop(tp, None)
        state.position, state.reset_to, state.retry_at = None, timestamp, -FOREVER
        state.awaits_committed = False

    def reset(self, tp: TopicPartition, timestamp: int, offset: int) -> None:
        """The position was looked up; it counts unless something else was asked for meanwhile."""
        state = self._states.get(tp)
        if state is not None and state.reset_to == timestamp:
            state.position, state.epoch, state.reset_to, state.retry_at = offset, -1, None, -FOREVER

    def awaiting_committed(self, now: float) -> list[TopicPartition]:
        """The partitions whose committed offset must be looked up now."""
        return [tp for tp, state in self._states.items() if state.awaits_committed and now >= state.retry_at]

    def start_at(self, tp: TopicPartition, committed: OffsetAndMetadata | None) -> None:
        """The committed offset was looked up, or there is none; counts unless something else was asked for meanwhile."""
        state = self._states.get(tp)
        if state is not None and state.awaits_committed:
            state.awaits_committed, state.retry_at = False, -FOREVER
            state.position, state.epoch = (
                (None, -1) if committed is None else (committed.offset, committed.leader_epoch)
            )
            state.reset_to = self.default_reset if committed is None else None

    def consumed(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return the position of each partition that has one, without what a loop over the consumer has not yielded."""
        self.restore_positions()
        waiting = self.loop.next_offsets()
        return {
            tp: waiting.get(tp) or OffsetAndMetadata(state.position, "", state.epoch)
            for tp, state in self._states.items()
            if state.position is not None
        }

    def next_offset(self, tp: TopicPartition) -> int | None:
        """Return the offset of the record that the user gets next; None while it is unknown."""
        self.restore_positions()
        waiting = self.loop.next_offsets().get(tp)
        return self.state(tp).position if waiting is None else waiting.offset

    def begin_poll(self) -> None:
        """Start a `poll`: all that was returned or yielded before counts as processed from now on."""
        self.take_back()
        self.loop.clear()
        self._before_last_poll = {}
        self._committed_by_user = {}
        self.is_returning = True

    def begin_loop(self, slices: Iterable[RecordSlice]) -> None:
        """Have a loop over the consumer yield these records, of which each counts as processed when the next is due."""
        self.loop.fill(slices)
        self._before_last_poll = {}
        self.is_returning = False

    def note_position(self, tp: TopicPartition, state: TopicPartitionState) -> None:
        """Keep the position of a partition whose records `poll` is about to return; to be called before it moves."""
        if state.position is not None:
            self._before_last_poll.setdefault(tp, (state.position, state.epoch))

    def forget_note(self, tp: TopicPartition) -> None:
        """Undo `note_position` where the position did not move and what is buffered stays."""
        self._before_last_poll.pop(tp, None)

    def restore_positions(self) -> None:
        """Undo the moves of a `poll` that an exception ended before its records were with the caller.

        Safe to be interrupted and to be called again.
        """
        if self.is_returning and self._before_last_poll:
            self.rollbacks += 1
            self._move_back(self._before_last_poll)
            self.loop.clear()
            self._before_last_poll = {}

    def recover(self) -> None:
        """After an exception in the middle of a call: ask for what is missing at once, whatever was under way."""
        self.restore_positions()
        for state in self._states.values():
            state.retry_at, state.revoking = -FOREVER, False

    def take_back(self) -> None:
        """Read again what a loop over the consumer has not yielded yet; the loop goes on at the positions."""
        self.restore_positions()
        offsets = self.loop.next_offsets()
        self._move_back({tp: (offset.offset, offset.leader_epoch) for tp, offset in offsets.items()})
        self.loop.discard()

    def mark_processed(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """Take note of a commit by the user: the records before these offsets are processed, even if the last ones."""
        self._committed_by_user.update({tp: (offset.offset, offset.leader_epoch) for tp, offset in offsets.items()})

    def drop_unprocessed(self) -> None:
        """Move the positions back to before the records that `poll` returned last and that a loop yielded last.

        For a consumer that an exception closes: how many of these were processed is unknown, so they are not committed.
        """
        self.restore_positions()
        places = {**self._before_last_poll, **self.loop.unprocessed_offsets()}
        committed = self._committed_by_user
        self._move_back({tp: max(place, committed.get(tp, place)) for tp, place in places.items()})
        self.loop.clear()

    def _move_back(self, places: Mapping[TopicPartition, tuple[int, int]]) -> None:
        for tp, (offset, epoch) in places.items():
            state = self._states.get(tp)
            if state is not None and state.position is not None and offset < state.position:
                state.position, state.epoch = offset, epoch

    def notice_new_topics(self, cluster: Cluster) -> list[TopicPartition]:
        """Where a topic was deleted and made anew, the position means nothing any more: begin by the policy.

        Returns those partitions.
        """
        begun = []
        for tp, state in self._states.items():
            topic_id = cluster.topic_id(tp.topic)
            if topic_id == NO_ID or topic_id == state.topic_id:
                continue
            if state.topic_id != NO_ID and state.position is not None:
                state.position, state.reset_to, state.retry_at = None, self.default_reset, -FOREVER
                state.readable_to = state.log_start = None
                begun.append(tp)
            state.topic_id = topic_id
        return begun

    def hold_back(self, tps: Iterable[TopicPartition]) -> None:
        """These are about to be given up."""
        for tp in tps:
            self.state(tp).revoking = True

    def needing_reset(self, now: float) -> dict[TopicPartition, int]:
        """The partitions whose position must be looked up now, with the timestamp to ask for."""
        return {
            tp: state.reset_to
            for tp, state in self._states.items()
            if state.reset_to is not None and now >= state.retry_at
        }

    def lost(self) -> list[TopicPartition]:
        """Partitions without a position and without a policy to find one."""
        return [tp for tp, state in self._states.items() if state.is_lost()]

    def postpone(self, tps: Iterable[TopicPartition], until: float) -> None:
        """Something went wrong with these: leave them alone for a moment."""
        for tp in tps:
            state = self._states.get(tp)
            if state is not None:
                state.retry_at = until

    def next_retry(self, now: float) -> float:
        """Seconds until a postponed partition may be asked for again; infinity when none is."""
        waits = (state.retry_at - now for state in self._states.values() if state.retry_at > now)
        return min(waits, default=FOREVER)

    def fetchable(self, now: float, buffered: Collection[TopicPartition]) -> list[TopicPartition]:
        """The partitions to ask for: positioned, not paused, not at their bound, and without buffered data.

        Whoever was asked for goes to the back, so that none starves when answers are cut at `fetch.max.bytes`.
        """
        return [tp for tp, state in self._states.items() if state.fetchable(now) and tp not in buffered]

    def move_to_end(self, tp: TopicPartition) -> None:
        """The partition had its turn."""
        if tp in self._states:
            self._states.move_to_end(tp)  # in one step: an exception between two would lose the partition

    def _fresh(self) -> TopicPartitionState:
        if self._in_group:
            return TopicPartitionState(awaits_committed=True)
        return TopicPartitionState(reset_to=self.default_reset)
