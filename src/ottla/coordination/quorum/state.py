"""States of a replica in its quorum, and the transitions between them (KIP-595, KIP-996).

                       learns of a leader
        ┌──────────────────────────────────────────► FOLLOWER
        │                                               │ the leader does not answer in time
    UNATTACHED ──── no leader in time ────► PROSPECTIVE ◄┘
        ▲                                     │ a majority would grant its vote
        │ learns of a later epoch             ▼
        │                                  CANDIDATE ──── a majority has granted its vote ───► LEADER
        │                                                                                       │ shuts down, or a
        └──────────────────────── RESIGNED ◄──────────────────────── majority stopped fetching ─┘

PROSPECTIVE asks for pre-votes and promises nothing; its epoch does not change. A replica that grants a vote stays UNATTACHED or
PROSPECTIVE and records the vote. RESIGNED has led in this epoch, possibly before a restart, and neither leads nor votes in it
again: a crash may have lost what it wrote last, and another record may take that offset.
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
"""The allowed next states. Only a sole voter goes from RESIGNED to PROSPECTIVE."""


class ElectionState(NamedTuple):
    """The promises of a replica, persisted in `quorum-state` before another node learns of them."""

    epoch: int = 0
    leader_id: int | None = None
    voted: ReplicaKey | None = None
