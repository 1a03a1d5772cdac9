"""The states and transitions of a KIP-848 member. The states are those of Java's MemberState."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum


class ConsumerState(Enum):
    UNSUBSCRIBED = "unsubscribed"
    """Not a member."""
    JOINING = "joining"
    """A join heartbeat is sent or due."""
    RECONCILING = "reconciling"
    """The owned partitions differ from the target: the user's thread revokes and assigns."""
    ACKNOWLEDGING = "acknowledging"
    """Reconciled; the next heartbeat, sent at once, reports the owned partitions."""
    STABLE = "stable"
    """The owned partitions are the target."""
    FENCED = "fenced"
    """Fenced by the coordinator: all partitions are lost. It joins again after the user's thread has given them up."""
    PREPARE_LEAVING = "prepare leaving"
    """The user leaves: the listener is called, offsets are committed, heartbeats continue."""
    LEAVING = "leaving"
    """The leave heartbeat is due."""
    STALE = "stale"
    """Left because of max.poll.interval.ms. It joins again after the user's thread has given up the partitions."""
    FATAL = "fatal"
    """A fatal error. Not a member until the user unsubscribes and subscribes again."""


class ConsumerEvent(Enum):
    SUBSCRIBED = "subscribed"
    ASSIGNED = "assigned"
    RECONCILED = "reconciled"
    ALL_REPORTED = "all told"
    PART_REPORTED = "part told"
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
"""States in which the member takes part in the group, or is joining."""
IN_GROUP = frozenset({S.RECONCILING, S.ACKNOWLEDGING, S.STABLE, S.PREPARE_LEAVING})
"""States in which it may own partitions and commit."""
SILENT = frozenset({S.UNSUBSCRIBED, S.FENCED, S.STALE, S.FATAL})
"""States in which no heartbeat is sent."""
TRANSITIONS: Mapping[tuple[ConsumerState, ConsumerEvent], ConsumerState] = {
    (S.UNSUBSCRIBED, E.SUBSCRIBED): S.JOINING,
    (S.JOINING, E.ASSIGNED): S.RECONCILING,
    (S.STABLE, E.ASSIGNED): S.RECONCILING,
    (S.RECONCILING, E.ASSIGNED): S.RECONCILING,
    (S.ACKNOWLEDGING, E.ASSIGNED): S.RECONCILING,
    (S.RECONCILING, E.RECONCILED): S.ACKNOWLEDGING,
    (S.ACKNOWLEDGING, E.ALL_REPORTED): S.STABLE,
    (S.ACKNOWLEDGING, E.PART_REPORTED): S.RECONCILING,
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
