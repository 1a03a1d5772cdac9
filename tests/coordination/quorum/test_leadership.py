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
    leadership.record_contact(OTHER, THREE, 1.0)
    leadership.restart_check_if_alone(THREE, 3.0)
    assert not leadership.has_lost_majority(TWO, 0.9 + SPAN)
    assert leadership.has_lost_majority(TWO, 1.0 + SPAN)


def test_a_leader_that_voted_alone_gives_others_their_time_once_they_vote() -> None:
    leadership = leading()
    leadership.restart_check_if_alone(ALONE, 100.0)
    assert not leadership.has_lost_majority(TWO, 99.9 + SPAN)
    assert leadership.has_lost_majority(TWO, 100.0 + SPAN)


def test_what_most_have_on_the_disk_is_committed_once_it_is_of_the_leader_s_own_epoch() -> None:
    leadership = Leadership(ME, 10, 0.0, QuorumConfig())
    assert leadership.committed_end(THREE, 11) is None
    leadership.record_fetch(OTHER, 10, 11, THREE, 1.0)
    assert leadership.committed_end(THREE, 11) is None, "a record of an earlier epoch on most disks may still give way"
    leadership.record_fetch(OTHER, 11, 12, THREE, 1.0)
    assert leadership.committed_end(THREE, 12) == 11
    leadership.record_fetch(THIRD, 12, 12, THREE, 1.0)
    assert leadership.committed_end(THREE, 11) == 11
    assert leadership.committed_end(THREE, 12) == 12


def test_a_leader_that_does_not_vote_counts_the_others_alone() -> None:
    leadership = leading()
    others = VoterSet.of(OTHER, THIRD)
    leadership.record_fetch(OTHER, 9, 9, others, 1.0)
    leadership.record_fetch(THIRD, 5, 9, others, 1.0)
    assert leadership.committed_end(others, 9) == 5


def test_a_leader_hears_of_most_only_when_so_many_voters_have_asked() -> None:
    leadership, five = leading(), VoterSet.of(ME, OTHER, THIRD, *(ReplicaKey(id_, UUID(int=id_)) for id_ in (4, 5)))
    leadership.record_contact(OTHER, five, 1.0)
    leadership.record_contact(ReplicaKey(9), five, 1.0)
    assert leadership.has_lost_majority(five, SPAN)
    leadership.record_contact(THIRD, five, 2.0)
    assert not leadership.has_lost_majority(five, SPAN)
    leadership.record_contact(OTHER, five, 2.5)
    assert leadership.has_lost_majority(five, 2.0 + SPAN)


def test_who_has_not_asked_of_late_is_told_of_the_leader() -> None:
    leadership, span = leading(), QuorumConfig().fetch_timeout_ms / 2000
    assert (leadership.announce_at, leadership.silent_voters(THREE, 0.0)) == (0.0, [OTHER, THIRD])
    leadership.record_contact(OTHER, THREE, 1.0)
    assert leadership.silent_voters(THREE, 0.9 + span) == [THIRD]
    assert leadership.silent_voters(THREE, 1.0 + span) == [OTHER, THIRD]
    leadership.schedule_announcement(3.0)
    assert leadership.announce_at == 3.0 + span


def test_who_has_come_farthest_is_to_lead_next() -> None:
    leadership = leading()
    leadership.record_fetch(OTHER, 5, 9, THREE, 1.0)
    leadership.record_fetch(THIRD, 8, 9, THREE, 1.0)
    assert leadership.successors(THREE) == [THIRD, OTHER]
    assert leadership.progress(THIRD).caught_up_at == float("-inf")
    leadership.record_fetch(THIRD, 9, 9, THREE, 2.0)
    assert leadership.progress(THIRD).caught_up_at == 2.0


def test_who_votes_alone_never_gives_up() -> None:
    assert not leading().has_lost_majority(ALONE, 1000.0)
