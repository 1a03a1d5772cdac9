"""Which partitions a consumer has, and how far it is in each.

Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from ottla.errors import IllegalStateError
from ottla.model import TopicPartition

FOREVER = float("inf")


@dataclass(slots=True)
class TopicPartitionState:
    """One assigned partition."""

    position: int | None = None
    """The offset to read next; None until it is known."""
    reset_to: int | None = None
    """The ListOffsets timestamp whose offset becomes the position; None when no reset is due."""
    paused: bool = False
    end: int | None = None
    """Nothing at or above this offset is read; None: no bound."""
    retry_at: float = -FOREVER
    """Not to be asked for before this moment."""
    readable_to: int | None = None
    """The end of what may be read, as last heard of: the high watermark, or the last stable offset."""

    def fetchable(self, now: float) -> bool:
        """Whether there is something to ask for."""
        if self.position is None or self.paused or now < self.retry_at:
            return False
        return self.end is None or self.position < self.end

    def has_more(self) -> bool:
        """Whether there certainly is something to be read from the position on."""
        return self.position is not None and self.readable_to is not None and self.position < self.readable_to


class SubscriptionState:
    """Assignment, positions, pauses and bounds."""

    def __init__(self, default_reset: int | None) -> None:
        self.default_reset = default_reset
        """The ListOffsets timestamp of `auto.offset.reset`; None for `none`."""
        self._states: dict[TopicPartition, TopicPartitionState] = {}

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Have exactly these; those that stay keep their positions."""
        self._states = {tp: self._states.get(tp) or self._fresh() for tp in dict.fromkeys(partitions)}

    def assigned(self) -> Collection[TopicPartition]:
        """What is assigned, in the order it was."""
        return self._states.keys()

    def state(self, tp: TopicPartition) -> TopicPartitionState:
        """One partition's state; IllegalStateError when it is not assigned."""
        state = self._states.get(tp)
        if state is None:
            raise IllegalStateError(f"{tp} is not assigned to this consumer; call assign() with it first")
        return state

    def state_or_none(self, tp: TopicPartition) -> TopicPartitionState | None:
        """One partition's state, None when it is no longer assigned."""
        return self._states.get(tp)

    def seek(self, tp: TopicPartition, offset: int) -> None:
        """Read on from `offset`."""
        state = self.state(tp)
        state.position, state.reset_to, state.retry_at = offset, None, -FOREVER

    def request_reset(self, tp: TopicPartition, timestamp: int) -> None:
        """Look the position up by `timestamp` (EARLIEST, LATEST) before reading on."""
        state = self.state(tp)
        state.position, state.reset_to, state.retry_at = None, timestamp, -FOREVER

    def reset(self, tp: TopicPartition, timestamp: int, offset: int) -> None:
        """The position was looked up; it counts unless something else was asked for meanwhile."""
        state = self._states.get(tp)
        if state is not None and state.reset_to == timestamp:
            state.position, state.reset_to, state.retry_at = offset, None, -FOREVER

    def needing_reset(self, now: float) -> dict[TopicPartition, int]:
        """The partitions whose position must be looked up now, with the timestamp to ask for."""
        return {
            tp: state.reset_to
            for tp, state in self._states.items()
            if state.reset_to is not None and now >= state.retry_at
        }

    def lost(self) -> list[TopicPartition]:
        """Partitions without a position and without a policy to find one."""
        return [tp for tp, state in self._states.items() if state.position is None and state.reset_to is None]

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
        state = self._states.pop(tp, None)
        if state is not None:
            self._states[tp] = state

    def _fresh(self) -> TopicPartitionState:
        return TopicPartitionState(reset_to=self.default_reset)
