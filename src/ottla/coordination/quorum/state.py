"""Where a replica of the metadata's log stands in its quorum, and where it can go from there (KIP-595, KIP-996).

                       a leader is heard of
        ┌──────────────────────────────────────────► FOLLOWER
        │                                               │ nothing comes any more
    UNATTACHED ──── nobody is heard of ───► PROSPECTIVE ◄┘
        ▲                                     │ most would vote for it
        │ a later epoch is heard of           ▼
        │                                  CANDIDATE ──── most have voted for it ───► LEADER
        │                                                                              │ it goes, or hears of too few
        └──────────────────────── RESIGNED ◄───────────────────────────────────────────┘

PROSPECTIVE asks whether others would vote for it, and promises nothing; its epoch stays as it is. Who votes, be it in
UNATTACHED or PROSPECTIVE, stays what it is and has a vote. RESIGNED has led in this epoch, perhaps before it was started
anew, and keeps from leading or voting in it again: what it wrote last may be lost, and another record stand in its place.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from ottla.coordination.quorum.voters import ReplicaKey


class State(Enum):
    UNATTACHED = "unattached"
    FOLLOWER = "follower"
    PROSPECTIVE = "prospective"
    CANDIDATE = "candidate"
    LEADER = "leader"
    RESIGNED = "resigned"


TRANSITIONS: dict[State, frozenset[State]] = {
    State.UNATTACHED: frozenset({State.UNATTACHED, State.FOLLOWER, State.PROSPECTIVE}),
    State.FOLLOWER: frozenset({State.UNATTACHED, State.FOLLOWER, State.PROSPECTIVE}),
    State.PROSPECTIVE: frozenset({State.UNATTACHED, State.FOLLOWER, State.CANDIDATE}),
    State.CANDIDATE: frozenset({State.UNATTACHED, State.FOLLOWER, State.PROSPECTIVE, State.LEADER}),
    State.LEADER: frozenset({State.UNATTACHED, State.FOLLOWER, State.RESIGNED}),
    State.RESIGNED: frozenset({State.UNATTACHED, State.FOLLOWER, State.PROSPECTIVE}),
}
"""Where one can go. From RESIGNED to PROSPECTIVE only who votes alone."""


class ElectionState(NamedTuple):
    """What a replica must not forget: it is on the disk before anybody is told (`quorum-state`)."""

    epoch: int = 0
    leader_id: int | None = None
    voted: ReplicaKey | None = None
