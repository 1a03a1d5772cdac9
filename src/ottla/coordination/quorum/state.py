"""The states of a replica in the quorum, and the transitions between them (KIP-595, KIP-996).

    UNATTACHED ── no leader within an election timeout ──┐
    FOLLOWER ──── no response within the fetch timeout ──┤
                                                         ▼
                           ┌──────────────────────► PROSPECTIVE
                           │ election timeout            │ pre-votes of a majority
                           └─────────────────────── CANDIDATE
                                                         │ votes of a majority
                                                         ▼
                                                      LEADER
                                                         │ shutdown, no contact with a majority, own removal committed, or
                                                         ▼   a better voter (see `raft`)
                                                     RESIGNED
                                                         │ election timeout; the epoch is increased by 1
                                                         ▼
                                                    UNATTACHED

    any state ────► UNATTACHED    a request or response of a later epoch names no leader
    any state ────► FOLLOWER      a request or response names the leader of a later epoch, or of this one if none was known
    PROSPECTIVE ──► FOLLOWER      no majority of pre-votes; a leader of this epoch is known
                ──► UNATTACHED    no majority of pre-votes; no leader is known

PROSPECTIVE requests pre-votes. It makes no promise, and its epoch does not change. CANDIDATE has increased the epoch by 1 and has
voted for itself. A replica that votes for another one records the vote and stays UNATTACHED or PROSPECTIVE.

RESIGNED was the leader of this epoch, possibly before a restart. It does not lead again in this epoch: a crash may have lost
records that it appended last but had not flushed. As the leader of the same epoch it could append other records at their offsets,
and two logs could not be compared by epoch and offset any more. It does not vote in this epoch either.
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
"""The allowed next states of each state.

A sole voter changes from RESIGNED to PROSPECTIVE when it restarts, because there is no other voter to wait for.
"""


class ElectionState(NamedTuple):
    """What a replica must remember after a restart so that it does not vote twice or lead twice in an epoch.

    The driver persists it in the file `quorum-state`, before it sends a message that depends on it.
    """

    epoch: int = 0
    """The greatest epoch that the replica knows. It never decreases."""
    leader_id: int | None = None
    """The leader of this epoch; the replica's own id if it is or was the leader."""
    voted: ReplicaKey | None = None
    """The replica that this one has voted for in this epoch; None before the vote."""
