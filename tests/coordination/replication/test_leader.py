"""What a leader makes of its followers' fetches."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from ottla.coordination.replication.assignment import Assignment, LiveBrokers
from ottla.coordination.replication.leader import Leader, Refusal

ALIVE = LiveBrokers({1: 11, 2: 12, 3: 13})
LED = Assignment(1, 5, 8, (1, 2, 3), frozenset({1, 2, 3}), min_in_sync=2)


@pytest.fixture
def leader() -> Leader:
    """Of ten batches, of which six are committed; everybody is in sync."""
    return Leader(1, LED, 10, 6, now=100.0, max_lag=30.0)


def fetch(leader: Leader, follower: int, offset: int, now: float = 101.0, epoch: int | None = None) -> None:
    assert leader.fetch(follower, offset, 10 + follower if epoch is None else epoch, now)
    leader.advance(ALIVE, now)
    leader.check()


def test_what_everybody_in_sync_has_is_committed(leader: Leader) -> None:
    fetch(leader, 2, 10)
    assert leader.high_watermark == 6
    fetch(leader, 3, 8)
    assert leader.high_watermark == 8


def test_a_fetch_that_goes_back_does_not_take_the_watermark_with_it(leader: Leader) -> None:
    fetch(leader, 2, 10)
    fetch(leader, 3, 10)
    fetch(leader, 3, 7)
    assert leader.high_watermark == 10


def test_who_did_not_reach_the_end_for_the_lags_time_leaves(leader: Leader) -> None:
    fetch(leader, 2, 10, now=129.0)
    assert leader.propose(ALIVE, 129.9) is None
    proposal = leader.propose(ALIVE, 130.1)
    assert proposal is not None
    assert (set(proposal.in_sync), proposal.broker_epochs) == ({1, 2}, {1: 11, 2: 12})


def test_a_leader_waits_for_those_it_has_proposed_to_leave_until_the_controller_has_agreed(leader: Leader) -> None:
    fetch(leader, 2, 10, now=131.0)
    assert leader.propose(ALIVE, 131.0)
    leader.advance(ALIVE, 131.0)
    assert leader.high_watermark == 6
    leader.assign(replace(LED, partition_epoch=9, in_sync=frozenset({1, 2})), 10, 131.2)
    leader.advance(ALIVE, 131.2)
    assert leader.high_watermark == 10


def shrunk(**more: object) -> Leader:
    assignment = replace(LED, in_sync=frozenset({1, 2}), **more)
    return Leader(1, assignment, 10, 6, now=100.0, max_lag=30.0)


def test_who_joins_must_have_what_the_leader_began_with() -> None:
    leader = shrunk()
    fetch(leader, 3, 8)
    assert leader.propose(ALIVE, 101.0) is None
    fetch(leader, 3, 10)
    proposal = leader.propose(ALIVE, 101.0)
    assert proposal is not None
    assert proposal.in_sync == {1, 2, 3}


def test_who_lacks_something_that_is_committed_does_not_join() -> None:
    leader = shrunk()
    leader.append(14)
    fetch(leader, 2, 14, now=140.0)
    assert leader.high_watermark == 14
    fetch(leader, 3, 12, now=140.0)
    assert leader.propose(ALIVE, 140.0) is None
    fetch(leader, 3, 14, now=140.0)
    assert leader.propose(ALIVE, 140.0) is not None


def test_who_was_started_again_since_it_fetched_does_not_join() -> None:
    leader = shrunk()
    fetch(leader, 3, 10, epoch=12)
    assert leader.propose(ALIVE, 101.0) is None


def test_who_joins_is_waited_for_before_the_controller_has_agreed() -> None:
    leader = shrunk()
    fetch(leader, 3, 10)
    leader.propose(ALIVE, 101.0)
    leader.append(12)
    fetch(leader, 2, 12)
    assert leader.high_watermark == 10


def test_nothing_is_committed_while_fewer_are_in_sync_than_asked_for() -> None:
    leader = Leader(1, replace(LED, in_sync=frozenset({1})), 10, 6, now=100.0)
    assert not leader.advance(ALIVE, 101.0)
    assert leader.high_watermark == 6


def test_more_than_there_are_copies_is_never_asked_for() -> None:
    alone = Leader(1, replace(LED, replicas=(1,), in_sync=frozenset({1})), 10, 6, now=100.0)
    assert alone.advance(ALIVE, 100.0)
    assert alone.high_watermark == 10


@pytest.mark.parametrize(("refusal", "again"), [(Refusal.OF_MEMBERS, True), (Refusal.OF_EPOCHS, False)])
def test_a_refused_proposal_is_made_again_where_the_metadata_will_not_say_more(refusal: Refusal, again: bool) -> None:
    leader = shrunk()
    fetch(leader, 3, 10)
    proposal = leader.propose(ALIVE, 101.0)
    assert proposal is not None
    leader.refused(proposal, refusal)
    assert (leader.propose(ALIVE, 101.0) is not None) is again


def test_older_metadata_that_come_late_change_nothing(leader: Leader) -> None:
    leader.assign(replace(LED, partition_epoch=7, in_sync=frozenset({1})), 10, 101.0)
    assert leader.assignment == LED


def test_another_number_of_those_who_must_be_in_sync_counts_at_once() -> None:
    leader = shrunk()
    leader.assign(replace(leader.assignment, min_in_sync=3), 10, 101.0)
    assert not leader.has_quorum


def test_whoever_begins_to_lead_once_more_knows_nothing_of_the_others(leader: Leader) -> None:
    fetch(leader, 2, 10)
    leader.append(12)
    leader.assign(replace(LED, leader_epoch=6, partition_epoch=9, in_sync=frozenset({1, 3})), 12, 102.0)
    fetch(leader, 3, 12, now=102.0)
    assert leader.propose(ALIVE, 102.0) is None
    fetch(leader, 2, 11, now=102.0)
    assert leader.propose(ALIVE, 102.0) is None, "it lacks what the leader began with"


def test_a_proposal_is_made_once_and_again_when_the_metadata_say_something_else() -> None:
    leader = shrunk()
    fetch(leader, 3, 10)
    assert leader.propose(ALIVE, 101.0) is not None
    assert leader.propose(ALIVE, 101.0) is None
    leader.assign(replace(leader.assignment, partition_epoch=9), 10, 101.5)
    proposal = leader.propose(ALIVE, 101.5)
    assert proposal is not None
    assert (proposal.leader_epoch, proposal.partition_epoch) == (5, 9)


def test_a_refusal_of_a_proposal_that_is_no_more_changes_nothing() -> None:
    leader = shrunk()
    fetch(leader, 3, 10)
    old = leader.propose(ALIVE, 101.0)
    assert old is not None
    leader.assign(replace(leader.assignment, partition_epoch=9), 10, 101.5)
    assert leader.propose(ALIVE, 101.5) is not None
    leader.refused(old, Refusal.OF_MEMBERS)
    assert leader.propose(ALIVE, 102.0) is None


def test_who_has_by_now_what_there_was_at_its_last_fetch_was_caught_up_then(leader: Leader) -> None:
    fetch(leader, 3, 10, now=101.0)
    fetch(leader, 2, 8, now=102.0)
    leader.append(12)
    fetch(leader, 2, 10, now=125.0)
    assert leader.lagging(132.0) == {3}
    assert leader.lagging(132.1) == {2, 3}


def test_who_lacks_something_for_no_longer_than_the_lags_time_is_in_sync(leader: Leader) -> None:
    fetch(leader, 2, 10, now=101.0)
    leader.append(11)
    assert leader.lagging(130.0) == set()
    assert leader.lagging(130.5) == {3}
    assert leader.followers[2].lag(11, 104.0) == 3.0


def test_who_has_no_copy_is_not_heard(leader: Leader) -> None:
    assert not leader.fetch(4, 10, 14, 101.0)
    leader.hear(4, 101.0)
    assert not leader.is_level(4)


def test_who_is_there_and_far_behind_is_not_waited_for() -> None:
    leader = shrunk()
    fetch(leader, 3, 2)
    fetch(leader, 2, 10)
    assert leader.high_watermark == 10


def test_who_may_not_join_is_not_waited_for_however_much_it_has() -> None:
    leader = shrunk()
    fetch(leader, 3, 10, epoch=12)
    leader.append(12)
    fetch(leader, 2, 12)
    assert leader.high_watermark == 12


def test_a_follower_has_half_a_minute_where_nothing_else_is_said() -> None:
    leader = Leader(1, LED, 10, 6, now=100.0)
    leader.append(11)
    assert (leader.lagging(130.0), leader.lagging(130.1)) == (set(), {2, 3})


def test_who_was_taken_out_of_sync_has_to_fetch_again_before_it_joins(leader: Leader) -> None:
    fetch(leader, 2, 10)
    fetch(leader, 3, 10)
    leader.assign(replace(LED, partition_epoch=9, in_sync=frozenset({1, 2})), 10, 101.2)
    assert leader.propose(ALIVE, 101.2) is None
    leader.append(12)
    fetch(leader, 2, 12, now=101.5)
    assert leader.high_watermark == 12, "who may have lost its copy is not waited for"
    fetch(leader, 3, 12, now=102.0)
    proposal = leader.propose(ALIVE, 102.0)
    assert proposal is not None
    assert proposal.in_sync == {1, 2, 3}


def test_who_has_all_and_asks_without_naming_it_was_caught_up_then(leader: Leader) -> None:
    fetch(leader, 2, 10, now=101.0)
    fetch(leader, 3, 10, now=101.0)
    leader.hear(2, 200.0)
    leader.append(11)
    assert leader.lagging(210.0) == {3}
    leader.hear(2, 220.0)
    assert leader.lagging(231.0) == {2, 3}, "behind now: what it asks for without naming it is not what is new"


def test_who_was_taken_out_of_sync_is_not_level_before_it_fetches_again(leader: Leader) -> None:
    fetch(leader, 2, 10)
    assert leader.is_level(2)
    leader.assign(replace(LED, partition_epoch=9, in_sync=frozenset({1, 3})), 10, 102.0)
    leader.hear(2, 103.0)
    assert not leader.is_level(2)
    fetch(leader, 2, 10)
    assert leader.is_level(2)
