"""The states of a classic group, and which follows which."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum


class ClassicGroupState(Enum):
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


NEXT: Mapping[ClassicGroupState, frozenset[ClassicGroupState]] = {
    ClassicGroupState.EMPTY: frozenset({ClassicGroupState.PREPARING_REBALANCE, ClassicGroupState.DEAD}),
    ClassicGroupState.PREPARING_REBALANCE: frozenset({ClassicGroupState.COMPLETING_REBALANCE, ClassicGroupState.EMPTY}),
    ClassicGroupState.COMPLETING_REBALANCE: frozenset(
        {ClassicGroupState.STABLE, ClassicGroupState.PREPARING_REBALANCE}
    ),
    ClassicGroupState.STABLE: frozenset({ClassicGroupState.PREPARING_REBALANCE}),
    ClassicGroupState.DEAD: frozenset(),
}
"""Where a group may go from each state."""
