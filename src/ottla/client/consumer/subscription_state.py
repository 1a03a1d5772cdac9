"""The subscription of a consumer, its assigned partitions, and the position in each. Pure.

Corresponds to Java's SubscriptionState.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Collection, Iterable, Mapping
from enum import Enum

from msgspec import Struct

from ottla.client.consumer.loop import LoopRecords
from ottla.client.consumer.records import RecordSlice
from ottla.client.metadata.metadata_snapshot import NO_ID, MetadataSnapshot
from ottla.errors import IllegalStateError
from ottla.model import FOREVER, OffsetAndMetadata, TopicPartition


class SubscriptionType(Enum):
    """The way in which a consumer gets its partitions."""

    NONE = "nothing"
    TOPICS = "subscribe() with topics"
    PATTERN = "subscribe() with a pattern"
    BROKER_PATTERN = "subscribe() with a pattern for the broker"
    PARTITIONS = "assign()"


BY_GROUP = frozenset({SubscriptionType.TOPICS, SubscriptionType.PATTERN, SubscriptionType.BROKER_PATTERN})


class TopicPartitionState(Struct):
    """The state of one assigned partition."""

    position: int | None = None
    """The offset to read next; None until it is known."""
    epoch: int = -1
    """The leader epoch of the record before the position; -1 if unknown."""
    is_awaiting_committed: bool = False
    """True if the committed offset must be looked up. The partition has no position before that."""
    reset_to: int | None = None
    """The ListOffsets timestamp for the position; None if no reset is due."""
    is_paused: bool = False
    is_revoking: bool = False
    """True from the commit before a revocation until the partition is removed. Its buffered records are not returned
    meanwhile, because the commit does not include them.
    """
    topic_id: object = NO_ID
    """The id of the topic that the position belongs to."""
    end: int | None = None
    """The exclusive end offset for reads; None for no bound."""
    retry_at: float = -FOREVER
    """The earliest time of the next Fetch, ListOffsets, OffsetFetch or validation request for the partition."""
    readable_to: int | None = None
    """The last known end of readable records: the high watermark, or the last stable offset."""
    log_start: int | None = None
    """The last known first offset of the log."""

    def is_fetchable(self, now: float) -> bool:
        """Return True if a Fetch request may be sent for the partition now."""
        if self.position is None or self.is_held or now < self.retry_at:
            return False
        return self.end is None or self.position < self.end

    @property
    def is_held(self) -> bool:
        """True if no records may be returned now."""
        return self.is_paused or self.is_revoking

    def is_lost(self) -> bool:
        """Return True if there is no position and no way to find one."""
        return self.position is None and self.reset_to is None and not self.is_awaiting_committed

    def has_more(self) -> bool:
        """Return True if the log is known to contain readable offsets from the position on."""
        return self.position is not None and self.readable_to is not None and self.position < self.readable_to


class SubscriptionState:
    """Subscription, assignment, positions, pauses and bounds."""

    def __init__(self, default_reset: int | None, *, in_group: bool = False) -> None:
        self.default_reset = default_reset
        """The ListOffsets timestamp of `auto.offset.reset`; None for `none`."""
        self.type = SubscriptionType.NONE
        self.topics: frozenset[str] = frozenset()
        """The subscribed topics; for a pattern, the topics that it matches."""
        self.pattern: re.Pattern[str] | None = None
        """A pattern that is matched by the client."""
        self.broker_pattern: str | None = None
        """A pattern that is matched by the broker (KIP-848)."""
        self.loop = LoopRecords()
        """The records that a `for` loop over the consumer has not yielded yet."""
        self.is_returning = False
        """True from the start of a `poll` until the caller has its records; it stays true if an exception ended the
        poll.

        The last statement before `poll` returns clears it, and this order matters. CPython runs signal handlers only
        after calls and in loops. Therefore no signal handler can raise an exception between this assignment and the
        assignment of the result by the caller.
        """
        self.rollbacks = 0
        """The number of polls that were rolled back by `restore_positions`. Data buffered before a rollback does not
        start at the position any more.
        """
        self._before_last_poll: dict[TopicPartition, tuple[int, int]] = {}
        """The position and epoch of each partition before the last `poll` advanced it."""
        self._committed_by_user: dict[TopicPartition, tuple[int, int]] = {}
        """The offsets that the user has committed since the last `poll` started."""
        self._in_group = in_group
        self._states: OrderedDict[TopicPartition, TopicPartitionState] = OrderedDict()
        self.assignments = 0
        """The number of calls of `assign`."""

    @property
    def is_group_managed(self) -> bool:
        """True if the group assigns the partitions."""
        return self.type in BY_GROUP

    def set_type(self, kind: SubscriptionType) -> None:
        """Set the type of subscription. Raises IllegalStateError if another type is active."""
        if self.type not in (SubscriptionType.NONE, kind):
            raise IllegalStateError(f"this consumer uses {self.type.value}: call unsubscribe() before {kind.value}")
        self.type = kind

    def subscribe(self, topics: Iterable[str]) -> None:
        self.set_type(SubscriptionType.TOPICS)
        self.topics = frozenset(topics)

    def subscribe_pattern(self, pattern: re.Pattern[str]) -> None:
        """Subscribe to the topics with names that `pattern` matches as a whole."""
        self.set_type(SubscriptionType.PATTERN)
        if self.pattern != pattern:
            self.pattern, self.topics = pattern, frozenset()

    def subscribe_broker_pattern(self, pattern: str) -> None:
        """Subscribe to the topics that the broker matches with `pattern`."""
        self.set_type(SubscriptionType.BROKER_PATTERN)
        self.broker_pattern = pattern

    def match_topics(self, cluster: MetadataSnapshot, *, exclude_internal: bool) -> None:
        """Update the topics that match the pattern."""
        pattern = self.pattern
        if pattern is not None:
            self.topics = frozenset(
                name
                for name, info in cluster.topics.items()
                if pattern.fullmatch(name) and not (exclude_internal and info.internal)
            )

    def unsubscribe(self) -> None:
        """Remove the subscription and the assignment."""
        self.type, self.topics, self.pattern, self.broker_pattern = SubscriptionType.NONE, frozenset(), None, None
        self._states = OrderedDict()
        self._before_last_poll = {}

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Set the assignment. Partitions that stay assigned keep their positions."""
        self.assignments += 1
        states = self._states
        self._states = OrderedDict((tp, states.get(tp) or self._new_state()) for tp in dict.fromkeys(partitions))

    def assigned(self) -> Collection[TopicPartition]:
        """Return the assigned partitions, in the order of assignment."""
        return self._states.keys()

    def states(self) -> dict[TopicPartition, TopicPartitionState]:
        """Return a copy of all assigned partitions with their states."""
        return dict(self._states)

    def state(self, tp: TopicPartition) -> TopicPartitionState:
        """Return the state of a partition. Raises IllegalStateError if it is not assigned."""
        state = self._states.get(tp)
        if state is None:
            raise IllegalStateError(f"{tp} is not assigned to this consumer; call assign() with it first")
        return state

    def state_or_none(self, tp: TopicPartition) -> TopicPartitionState | None:
        """Return the state of a partition; None if it is not assigned."""
        return self._states.get(tp)

    def seek(self, tp: TopicPartition, offset: int, epoch: int = -1) -> None:
        """Set the position to `offset`. `epoch` is the leader epoch of the record before it; -1 if unknown."""
        state = self.state(tp)
        self._before_last_poll.pop(tp, None)
        self._committed_by_user.pop(tp, None)
        state.position, state.epoch, state.reset_to, state.retry_at = offset, epoch, None, -FOREVER
        state.is_awaiting_committed = False

    def request_reset(self, tp: TopicPartition, timestamp: int) -> None:
        """Clear the position. It is looked up with ListOffsets by `timestamp` (EARLIEST, LATEST)."""
        state = self.state(tp)
        self._before_last_poll.pop(tp, None)
        self._committed_by_user.pop(tp, None)
        state.position, state.reset_to, state.retry_at = None, timestamp, -FOREVER
        state.is_awaiting_committed = False

    def reset(self, tp: TopicPartition, timestamp: int, offset: int) -> None:
        """Set the position to a looked up offset.

        Ignored if the user or another reset has changed the position since the request.
        """
        state = self._states.get(tp)
        if state is not None and state.reset_to == timestamp:
            state.position, state.epoch, state.reset_to, state.retry_at = offset, -1, None, -FOREVER

    def find_awaiting_committed(self, now: float) -> list[TopicPartition]:
        """Return the partitions with a committed offset to look up now."""
        return [tp for tp, state in self._states.items() if state.is_awaiting_committed and now >= state.retry_at]

    def start_at(self, tp: TopicPartition, committed: OffsetAndMetadata | None) -> None:
        """Set the position to the committed offset, or request a reset if there is none.

        Ignored if the position was changed since the request.
        """
        state = self._states.get(tp)
        if state is not None and state.is_awaiting_committed:
            state.is_awaiting_committed, state.retry_at = False, -FOREVER
            state.position, state.epoch = (
                (None, -1) if committed is None else (committed.offset, committed.leader_epoch)
            )
            state.reset_to = self.default_reset if committed is None else None

    def consumed_offsets(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return the position of each partition that has one, excluding records that a loop has not yielded."""
        self.restore_positions()
        waiting = self.loop.next_offsets()
        return {
            tp: waiting.get(tp) or OffsetAndMetadata(state.position, "", state.epoch)
            for tp, state in self._states.items()
            if state.position is not None
        }

    def next_offset(self, tp: TopicPartition) -> int | None:
        """Return the offset of the record that the user receives next; None while it is unknown."""
        self.restore_positions()
        waiting = self.loop.next_offsets().get(tp)
        return self.state(tp).position if waiting is None else waiting.offset

    def begin_poll(self) -> None:
        """Start a `poll`. All records that earlier polls returned, or a loop has yielded, count as processed."""
        self.rewind_unyielded()
        self.loop.clear()
        self._before_last_poll = {}
        self._committed_by_user = {}
        self.is_returning = True

    def begin_loop(self, slices: Iterable[RecordSlice]) -> None:
        """Start a loop over these records. Each counts as processed when the next one is requested."""
        self.loop.add_records(slices)
        self._before_last_poll = {}
        self.is_returning = False

    def save_position(self, tp: TopicPartition, state: TopicPartitionState) -> None:
        """Save the position of a partition before `poll` advances it."""
        if state.position is not None:
            self._before_last_poll.setdefault(tp, (state.position, state.epoch))

    def drop_saved_position(self, tp: TopicPartition) -> None:
        """Discard the saved position, because the position did not move and the data stays buffered."""
        self._before_last_poll.pop(tp, None)

    def restore_positions(self) -> None:
        """Undo the advances of a `poll` that an exception ended before the caller had its records.

        May be interrupted and called again.
        """
        if self.is_returning and self._before_last_poll:
            self.rollbacks += 1
            self._move_back(self._before_last_poll)
            self.loop.clear()
            self._before_last_poll = {}

    def recover(self) -> None:
        """Handle an exception that ended a call: allow requests for all partitions at once, because those in flight are lost."""
        self.restore_positions()
        for state in self._states.values():
            state.retry_at, state.is_revoking = -FOREVER, False

    def rewind_unyielded(self) -> None:
        """Rewind the positions to the records that a loop has not yielded, and end the loop."""
        self.restore_positions()
        offsets = self.loop.next_offsets()
        self._move_back({tp: (offset.offset, offset.leader_epoch) for tp, offset in offsets.items()})
        self.loop.discard()

    def mark_processed(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """Record a commit by the user.

        All records before these offsets count as processed, including those that the last `poll` returned.
        """
        self._committed_by_user.update({tp: (offset.offset, offset.leader_epoch) for tp, offset in offsets.items()})

    def drop_unprocessed(self) -> None:
        """Move the positions back to before the records of the last `poll`; in a loop, to before the record yielded last.

        For a consumer that is closed by an exception: it is unknown how many of these were processed, so they are not
        committed.
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

    def reset_recreated_topics(self, cluster: MetadataSnapshot) -> list[TopicPartition]:
        """Reset the positions of recreated topics, for which the old offsets have no meaning. Return their partitions."""
        changed = []
        for tp, state in self._states.items():
            topic_id = cluster.topic_id(tp.topic)
            if topic_id == NO_ID or topic_id == state.topic_id:
                continue
            if state.topic_id != NO_ID and state.position is not None:
                state.position, state.reset_to, state.retry_at = None, self.default_reset, -FOREVER
                state.readable_to = state.log_start = None
                changed.append(tp)
            state.topic_id = topic_id
        return changed

    def mark_revoking(self, tps: Iterable[TopicPartition]) -> None:
        """Mark partitions as being revoked."""
        for tp in tps:
            self.state(tp).is_revoking = True

    def find_reset_timestamps(self, now: float) -> dict[TopicPartition, int]:
        """Return the partitions to look up now, with the timestamp for each."""
        return {
            tp: state.reset_to
            for tp, state in self._states.items()
            if state.reset_to is not None and now >= state.retry_at
        }

    def find_lost(self) -> list[TopicPartition]:
        """Return the partitions without a position and without a reset policy."""
        return [tp for tp, state in self._states.items() if state.is_lost()]

    def postpone_requests(self, tps: Iterable[TopicPartition], until: float) -> None:
        """Delay requests for these partitions after an error."""
        for tp in tps:
            state = self._states.get(tp)
            if state is not None:
                state.retry_at = until

    def next_retry(self, now: float) -> float:
        """Return the seconds until the next delayed partition may be requested; infinity if there is none."""
        waits = (state.retry_at - now for state in self._states.values() if state.retry_at > now)
        return min(waits, default=FOREVER)

    def find_fetchable(self, now: float, buffered: Collection[TopicPartition]) -> list[TopicPartition]:
        """Return the partitions to fetch: those for which `is_fetchable` is true and that are not in `buffered`.

        Partitions fetched least recently come first, because a broker ends its response at `fetch.max.bytes`.
        `move_to_end` maintains this order.
        """
        return [tp for tp, state in self._states.items() if state.is_fetchable(now) and tp not in buffered]

    def move_to_end(self, tp: TopicPartition) -> None:
        """Move a fetched partition to the end of the order."""
        if tp in self._states:
            self._states.move_to_end(tp)  # in one step: an exception between two steps would lose the partition

    def _new_state(self) -> TopicPartitionState:
        if self._in_group:
            return TopicPartitionState(is_awaiting_committed=True)
        return TopicPartitionState(reset_to=self.default_reset)
