"""Voters, majorities, and the outcome of elections."""

from __future__ import annotations

from uuid import UUID

import pytest

from ottla.coordination.quorum.control_records import KRaftVersionRecord
from ottla.coordination.quorum.raft import Election
from ottla.coordination.quorum.voter_history import VoterHistory, VoterRules
from ottla.coordination.quorum.voters import NO_VOTERS, ReplicaKey, VoterSet
from ottla.coordination.quorum.voters_record import Endpoint, KRaftVersionFeature, Voter

KEYS = [ReplicaKey(id_, UUID(int=id_)) for id_ in (1, 2, 3, 4, 5)]
ME, OTHER, THIRD = KEYS[:3]
THREE = VoterSet.of(ME, OTHER, THIRD)
ELSEWHERE = Voter(2, OTHER.directory_id, [Endpoint("CONTROLLER", "b", 9093)], KRaftVersionFeature(0, 1))


@pytest.mark.parametrize(("count", "majority"), [(1, 1), (2, 2), (3, 2), (4, 3), (5, 3)])
def test_any_two_majorities_share_a_voter(count: int, majority: int) -> None:
    assert VoterSet.of(*KEYS[:count]).majority == majority


def test_a_node_with_another_directory_does_not_vote_and_one_without_a_directory_may() -> None:
    assert THREE.has(OTHER)
    assert not THREE.has(OTHER._replace(directory_id=UUID(int=9)))
    assert THREE.has(ReplicaKey(2))
    assert not THREE.has(ReplicaKey(4))
    assert VoterSet.of(ReplicaKey(2)).has(OTHER)


def test_a_node_without_a_directory_is_identified_by_its_id() -> None:
    assert THREE.known(ReplicaKey(2)) == OTHER
    assert THREE.known(ReplicaKey(4)) == ReplicaKey(4)
    assert THREE.others(ME) == [2, 3]


def test_a_voter_is_added_removed_and_updated() -> None:
    assert THREE.without(2).ids == {1, 3}
    moved = THREE.with_voter(ELSEWHERE)
    assert moved.ids == {1, 2, 3}
    assert [list(moved.endpoints(each)) for each in (2, 1, 9)] == [list(ELSEWHERE.endpoints), [], []]
    assert [each.voter_id for each in moved.record().voters] == [1, 2, 3]


def test_an_election_is_won_by_a_majority_and_lost_when_none_is_possible() -> None:
    votes = Election(THREE)
    votes.record_vote(1, granted=True)
    assert (votes.is_won, votes.is_lost, [key.id for key in votes.undecided]) == (False, False, [2, 3])
    votes.record_vote(2, granted=False)
    assert (votes.is_won, votes.is_lost) == (False, False)
    votes.record_vote(3, granted=True)
    assert (votes.is_won, votes.undecided) == (True, [])
    votes.record_vote(3, granted=False)
    assert (votes.is_won, votes.is_lost) == (False, True)


def test_the_last_answer_of_a_voter_counts_and_an_unknown_node_has_none() -> None:
    votes = Election(THREE)
    votes.record_vote(2, granted=False)
    votes.record_vote(2, granted=True)
    votes.record_vote(9, granted=True)
    assert (votes.granted, votes._rejected) == ({2}, set())


def test_an_election_can_be_won_while_a_majority_is_online() -> None:
    votes = Election(THREE)
    votes.record_ended(2)
    assert votes.is_majority_alive
    votes.record_ended(3)
    assert not votes.is_majority_alive


def test_a_truncation_restores_the_previous_voters() -> None:
    history = VoterHistory(THREE, 0, 3)
    history.apply(KRaftVersionRecord(0, 1), 8)
    history.apply(THREE.without(3).record(), 9)
    history.apply(None, 10)
    assert history.newest == VoterRules(9, THREE.without(3), 9, 1)
    history.truncate(9)
    assert history.newest.voters_end == 9
    history.truncate(8)
    assert history.newest == VoterRules(8, THREE, 3, 1)
    history.truncate(0)
    assert history.newest == VoterRules(3, THREE, 3, 0)


def test_without_voters_nothing_is_known() -> None:
    assert VoterHistory().newest == VoterRules(0, NO_VOTERS, 0, 0)
