"""When a leader of the quorum gives up, and when it does not yet."""

from __future__ import annotations

from uuid import UUID

from ottla.coordination.quorum.config import QuorumConfig
from ottla.coordination.quorum.leadership import Leadership
from ottla.coordination.quorum.voters import ReplicaKey, VoterSet

ME, OTHER, THIRD = (ReplicaKey(id_, UUID(int=id_)) for id_ in (1, 2, 3))
ALONE, THREE, TWO = VoterSet.of(ME), VoterSet.of(ME, OTHER, THIRD), VoterSet.of(ME, OTHER)
SPAN = QuorumConfig().fetch_timeout_ms * QuorumConfig.CHECK_FACTOR / 1000


def leading() -> Leadership:
    return Leadership(ME, 0, 0.0, QuorumConfig())


def test_a_leader_that_most_have_left_gives_up_as_soon_whoever_votes_meanwhile() -> None:
    """Every change of the voters that somebody asked of one that was cut off made it lead on for as long again."""
    leadership = leading()
    leadership.heard(OTHER, THREE, 1.0)
    leadership.let_others_vote(THREE, 3.0)
    assert not leadership.has_lost_the_quorum(TWO, 0.9 + SPAN)
    assert leadership.has_lost_the_quorum(TWO, 1.0 + SPAN)


def test_a_leader_that_voted_alone_gives_others_their_time_once_they_vote() -> None:
    leadership = leading()
    leadership.let_others_vote(ALONE, 100.0)
    assert not leadership.has_lost_the_quorum(TWO, 99.9 + SPAN)
    assert leadership.has_lost_the_quorum(TWO, 100.0 + SPAN)
