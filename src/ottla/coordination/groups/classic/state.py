"""The states of a classic group, and which follows which."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum


class State(Enum):
    """Kafka's names, as DescribeGroups and ListGroups tell them."""

    EMPTY = "Empty"
    """No members; offsets may be kept."""
    PREPARING_REBALANCE = "PreparingRebalance"
    """Members are to join."""
    COMPLETING_REBALANCE = "CompletingRebalance"
    """All have joined; the leader's assignment is awaited."""
    STABLE = "Stable"
    """Everybody has an assignment."""
    DEAD = "Dead"
    """What a group is that is not there: a machine holds none."""

    def __str__(self) -> str:
        return self.value


NEXT: Mapping[State, frozenset[State]] = {
    State.EMPTY: frozenset({State.PREPARING_REBALANCE, State.DEAD}),
    State.PREPARING_REBALANCE: frozenset({State.COMPLETING_REBALANCE, State.EMPTY}),
    State.COMPLETING_REBALANCE: frozenset({State.STABLE, State.PREPARING_REBALANCE}),
    State.STABLE: frozenset({State.PREPARING_REBALANCE}),
    State.DEAD: frozenset(),
}
"""Where a group may go from each state."""
