"""The states and transitions of a classic member."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum


class ClassicMemberState(Enum):
    """The state of a classic member, as in Java's AbstractCoordinator."""

    UNJOINED = "unjoined"
    PREPARING_REBALANCE = "preparing rebalance"
    COMPLETING_REBALANCE = "completing rebalance"
    STABLE = "stable"


class ClassicMemberEvent(Enum):
    JOIN_SENT = "JoinGroup sent"
    JOINED = "joined"
    SYNCED = "synced"
    FAILED = "failed"
    LEFT = "left"


S, E = ClassicMemberState, ClassicMemberEvent
TRANSITIONS: Mapping[tuple[ClassicMemberState, ClassicMemberEvent], ClassicMemberState] = {
    (S.UNJOINED, E.JOIN_SENT): S.PREPARING_REBALANCE,
    (S.STABLE, E.JOIN_SENT): S.PREPARING_REBALANCE,
    (S.PREPARING_REBALANCE, E.JOINED): S.COMPLETING_REBALANCE,
    (S.COMPLETING_REBALANCE, E.SYNCED): S.STABLE,
    (S.PREPARING_REBALANCE, E.FAILED): S.UNJOINED,
    (S.COMPLETING_REBALANCE, E.FAILED): S.UNJOINED,
    (S.STABLE, E.FAILED): S.UNJOINED,
    (S.UNJOINED, E.FAILED): S.UNJOINED,
    (S.UNJOINED, E.LEFT): S.UNJOINED,
    (S.PREPARING_REBALANCE, E.LEFT): S.UNJOINED,
    (S.COMPLETING_REBALANCE, E.LEFT): S.UNJOINED,
    (S.STABLE, E.LEFT): S.UNJOINED,
}
SEEN_BY_COORDINATOR = frozenset({S.COMPLETING_REBALANCE, S.STABLE})
"""States in which the coordinator knows the member, so the user must keep polling or leave."""
