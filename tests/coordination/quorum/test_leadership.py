"""When a leader of the quorum gives up, and when it does not yet."""

from __future__ import annotations

from uuid import UUID

from ottla.coordination.quorum.config import QuorumConfig
from ottla.coordination.quorum.leadership import LeaderState
from ottla.coordination.quorum.voters import ReplicaKey, VoterSet

ME, OTHER, THIRD = (ReplicaKey(id_, UUID(int=id_)) for id_ in (1, 2, 3))
ALONE, THREE, TWO = VoterSet.of(ME), VoterSet.of(ME, OTHER, THIRD), VoterSet.of(ME, OTHER)
SPAN = QuorumConfig().fetch_timeout_ms * QuorumConfig.CHECK_FACTOR / 1000


def leading() -> LeaderState:
    return LeaderState(ME, 0, 0.0, QuorumConfig())


def test_a_leader_without_a_majority_resigns_in_time_despite_voter_changes() -> None:
    """Each requested change of the voters once extended the leadership of an isolated leader by a full timeout."""
    leadership = leading()
    leadership.record_contact(OTHER, THREE, 1.0)
    leadership.restart_check_if_alone(THREE, 3.0)
    assert not leadership.has_lost_majority(TWO, 0.9 + SPAN)
    assert leadership.has_lost_majority(TWO, 1.0 + SPAN)


def test_a_former_single_voter_gives_new_voters_a_full_timeout() -> None:
    leadership = leading()
    leadership.restart_check_if_alone(ALONE, 100.0)
    assert not leadership.has_lost_majority(TWO, 99.9 + SPAN)
    assert leadership.has_lost_majority(TWO, 100.0 + SPAN)


def test_records_on_a_majority_are_committed_with_one_of_the_leaders_epoch() -> None:
    leadership = LeaderState(ME, 10, 0.0, QuorumConfig())
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


def test_a_majority_counts_only_voters_that_have_fetched() -> None:
    leadership, five = leading(), VoterSet.of(ME, OTHER, THIRD, *(ReplicaKey(id_, UUID(int=id_)) for id_ in (4, 5)))
    leadership.record_contact(OTHER, five, 1.0)
    leadership.record_contact(ReplicaKey(9), five, 1.0)
    assert leadership.has_lost_majority(five, SPAN)
    leadership.record_contact(THIRD, five, 2.0)
    assert not leadership.has_lost_majority(five, SPAN)
    leadership.record_contact(OTHER, five, 2.5)
    assert leadership.has_lost_majority(five, 2.0 + SPAN)


def test_voters_without_a_recent_fetch_are_notified_of_the_leader() -> None:
    leadership, span = leading(), QuorumConfig().fetch_timeout_ms / 2000
    assert (leadership.announce_at, leadership.silent_voters(THREE, 0.0)) == (0.0, [OTHER, THIRD])
    leadership.record_contact(OTHER, THREE, 1.0)
    assert leadership.silent_voters(THREE, 0.9 + span) == [THIRD]
    assert leadership.silent_voters(THREE, 1.0 + span) == [OTHER, THIRD]
    leadership.schedule_announcement(3.0)
    assert leadership.announce_at == 3.0 + span


def test_the_most_advanced_voter_is_the_preferred_successor() -> None:
    leadership = leading()
    leadership.record_fetch(OTHER, 5, 9, THREE, 1.0)
    leadership.record_fetch(THIRD, 8, 9, THREE, 1.0)
    assert leadership.successors(THREE) == [THIRD, OTHER]
    assert leadership.progress(THIRD).caught_up_at == float("-inf")
    leadership.record_fetch(THIRD, 9, 9, THREE, 2.0)
    assert leadership.progress(THIRD).caught_up_at == 2.0


def test_a_single_voter_never_resigns() -> None:
    assert not leading().has_lost_majority(ALONE, 1000.0)
