"""Where a member of the protocol of KIP-848 is, and what moves it. The states are the Java client's."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum


class ConsumerState(Enum):
    UNSUBSCRIBED = "unsubscribed"
    """It wants no part in the group."""
    JOINING = "joining"
    """It asks to be let in, and has no answer."""
    RECONCILING = "reconciling"
    """What it has is not what it is to have: the user's thread gives up and takes."""
    ACKNOWLEDGING = "acknowledging"
    """That is done, and the coordinator is to hear of it at once."""
    STABLE = "stable"
    """It has what it is to have."""
    FENCED = "fenced"
    """The coordinator has put it out: everything is lost, and it joins again once the user's thread knows that."""
    PREPARE_LEAVING = "prepare leaving"
    """The user goes: the listener is told, offsets are committed, heartbeats go on."""
    LEAVING = "leaving"
    """The coordinator is to hear that it goes."""
    STALE = "stale"
    """It has left because its user did not poll, and joins again once the user's thread knows that."""
    FATAL = "fatal"
    """It was refused, and has no part in the group until the user unsubscribes and subscribes again."""


class ConsumerEvent(Enum):
    SUBSCRIBED = "subscribed"
    ASSIGNED = "assigned"
    RECONCILED = "reconciled"
    ALL_TOLD = "all told"
    PART_TOLD = "part told"
    FENCED = "fenced"
    IDLE = "idle"
    RELEASED = "released"
    PREPARED = "prepared"
    LEFT = "left"
    GONE = "gone"
    GONE_IDLE = "gone idle"
    FAILED = "failed"


S, E = ConsumerState, ConsumerEvent
ACTIVE = frozenset({S.JOINING, S.RECONCILING, S.ACKNOWLEDGING, S.STABLE})
"""Where it takes part in the group, or is about to."""
IN_GROUP = frozenset({S.RECONCILING, S.ACKNOWLEDGING, S.STABLE, S.PREPARE_LEAVING})
"""Where it may have partitions, and commit."""
SILENT = frozenset({S.UNSUBSCRIBED, S.FENCED, S.STALE, S.FATAL})
"""Where there is nothing to say."""
TRANSITIONS: Mapping[tuple[ConsumerState, ConsumerEvent], ConsumerState] = {
    (S.UNSUBSCRIBED, E.SUBSCRIBED): S.JOINING,
    (S.JOINING, E.ASSIGNED): S.RECONCILING,
    (S.STABLE, E.ASSIGNED): S.RECONCILING,
    (S.RECONCILING, E.ASSIGNED): S.RECONCILING,
    (S.ACKNOWLEDGING, E.ASSIGNED): S.RECONCILING,
    (S.RECONCILING, E.RECONCILED): S.ACKNOWLEDGING,
    (S.ACKNOWLEDGING, E.ALL_TOLD): S.STABLE,
    (S.ACKNOWLEDGING, E.PART_TOLD): S.RECONCILING,
    **{(state, E.FENCED): S.FENCED for state in ACTIVE},
    **{(state, E.IDLE): S.LEAVING for state in ACTIVE},
    **{(state, E.FAILED): S.FATAL for state in (*ACTIVE, S.UNSUBSCRIBED, S.FENCED, S.STALE, S.FATAL)},
    (S.FENCED, E.RELEASED): S.JOINING,
    (S.STALE, E.RELEASED): S.JOINING,
    **{(state, E.PREPARED): S.PREPARE_LEAVING for state in (*ACTIVE, S.FENCED, S.STALE, S.FATAL)},
    **{(state, E.LEFT): S.LEAVING for state in (*ACTIVE, S.PREPARE_LEAVING)},
    **{(state, E.GONE): S.UNSUBSCRIBED for state in S},
    (S.LEAVING, E.GONE_IDLE): S.STALE,
}
