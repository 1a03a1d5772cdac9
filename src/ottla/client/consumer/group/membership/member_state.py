"""Where a member of the classic protocol is on its way into the group, and what moves it."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum


class MemberState(Enum):
    """Where a member is on its way into the group."""

    UNJOINED = "unjoined"
    PREPARING_REBALANCE = "preparing rebalance"
    COMPLETING_REBALANCE = "completing rebalance"
    STABLE = "stable"


class MemberEvent(Enum):
    JOIN_SENT = "JoinGroup sent"
    JOINED = "joined"
    SYNCED = "synced"
    FAILED = "failed"
    LEFT = "left"


S, E = MemberState, MemberEvent
TRANSITIONS: Mapping[tuple[MemberState, MemberEvent], MemberState] = {
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
"""Where the user must go on polling, or leave."""
