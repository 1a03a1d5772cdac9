"""A leader and its followers' fetches."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from ottla.coordination.replication.assignment import LiveBrokers, ReplicaAssignment
from ottla.coordination.replication.leader import Leader, ProposalRejection

ALIVE = LiveBrokers({1: 11, 2: 12, 3: 13})
LED = ReplicaAssignment(1, 5, 8, (1, 2, 3), frozenset({1, 2, 3}), min_in_sync=2)


@pytest.fixture
def leader() -> Leader:
    """Return a leader of ten batches, of which six are committed, with all replicas in the ISR."""
    return Leader(1, LED, 10, 6, now=100.0, max_lag=30.0)


def fetch(leader: Leader, follower: int, offset: int, now: float = 101.0, epoch: int | None = None) -> None:
    assert leader.fetch(follower, offset, 10 + follower if epoch is None else epoch, now)
    leader.advance(ALIVE, now)
    leader.check()


def test_records_on_every_in_sync_replica_are_committed(leader: Leader) -> None:
    fetch(leader, 2, 10)
    assert leader.high_watermark == 6
    fetch(leader, 3, 8)
    assert leader.high_watermark == 8


def test_a_fetch_at_a_lower_offset_does_not_lower_the_high_watermark(leader: Leader) -> None:
    fetch(leader, 2, 10)
    fetch(leader, 3, 10)
    fetch(leader, 3, 7)
    assert leader.high_watermark == 10


def test_a_follower_that_lags_too_long_leaves_the_isr(leader: Leader) -> None:
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


def test_a_joining_replica_must_have_the_leaders_start_of_epoch() -> None:
    leader = shrunk()
    fetch(leader, 3, 8)
    assert leader.propose(ALIVE, 101.0) is None
    fetch(leader, 3, 10)
    proposal = leader.propose(ALIVE, 101.0)
    assert proposal is not None
    assert proposal.in_sync == {1, 2, 3}


def test_a_replica_below_the_high_watermark_does_not_join() -> None:
    leader = shrunk()
    leader.append(14)
    fetch(leader, 2, 14, now=140.0)
    assert leader.high_watermark == 14
    fetch(leader, 3, 12, now=140.0)
    assert leader.propose(ALIVE, 140.0) is None
    fetch(leader, 3, 14, now=140.0)
    assert leader.propose(ALIVE, 140.0) is not None


def test_a_replica_restarted_since_its_fetch_does_not_join() -> None:
    leader = shrunk()
    fetch(leader, 3, 10, epoch=12)
    assert leader.propose(ALIVE, 101.0) is None


def test_a_joining_replica_counts_before_the_controller_agrees() -> None:
    leader = shrunk()
    fetch(leader, 3, 10)
    leader.propose(ALIVE, 101.0)
    leader.append(12)
    fetch(leader, 2, 12)
    assert leader.high_watermark == 10


def test_nothing_is_committed_while_the_isr_is_below_min_isr() -> None:
    leader = Leader(1, replace(LED, in_sync=frozenset({1})), 10, 6, now=100.0)
    assert not leader.advance(ALIVE, 101.0)
    assert leader.high_watermark == 6


def test_min_insync_replicas_is_capped_at_the_number_of_replicas() -> None:
    alone = Leader(1, replace(LED, replicas=(1,), in_sync=frozenset({1})), 10, 6, now=100.0)
    assert alone.advance(ALIVE, 100.0)
    assert alone.high_watermark == 10


@pytest.mark.parametrize(
    ("refusal", "again"), [(ProposalRejection.OF_MEMBERS, True), (ProposalRejection.OF_EPOCHS, False)]
)
def test_a_rejected_proposal_is_retried_if_no_new_metadata_will_follow(refusal: ProposalRejection, again: bool) -> None:
    leader = shrunk()
    fetch(leader, 3, 10)
    proposal = leader.propose(ALIVE, 101.0)
    assert proposal is not None
    leader.handle_rejection(proposal, refusal)
    assert (leader.propose(ALIVE, 101.0) is not None) is again


def test_late_old_metadata_change_nothing(leader: Leader) -> None:
    leader.assign(replace(LED, partition_epoch=7, in_sync=frozenset({1})), 10, 101.0)
    assert leader.assignment == LED


def test_a_changed_min_insync_replicas_applies_at_once() -> None:
    leader = shrunk()
    leader.assign(replace(leader.assignment, min_in_sync=3), 10, 101.0)
    assert not leader.has_quorum


def test_a_new_leader_has_no_state_of_its_followers(leader: Leader) -> None:
    fetch(leader, 2, 10)
    leader.append(12)
    leader.assign(replace(LED, leader_epoch=6, partition_epoch=9, in_sync=frozenset({1, 3})), 12, 102.0)
    fetch(leader, 3, 12, now=102.0)
    assert leader.propose(ALIVE, 102.0) is None
    fetch(leader, 2, 11, now=102.0)
    assert leader.propose(ALIVE, 102.0) is None, "it lacks what the leader began with"


def test_a_proposal_is_sent_once_and_again_if_the_metadata_differ() -> None:
    leader = shrunk()
    fetch(leader, 3, 10)
    assert leader.propose(ALIVE, 101.0) is not None
    assert leader.propose(ALIVE, 101.0) is None
    leader.assign(replace(leader.assignment, partition_epoch=9), 10, 101.5)
    proposal = leader.propose(ALIVE, 101.5)
    assert proposal is not None
    assert (proposal.leader_epoch, proposal.partition_epoch) == (5, 9)


def test_a_rejection_of_an_obsolete_proposal_changes_nothing() -> None:
    leader = shrunk()
    fetch(leader, 3, 10)
    old = leader.propose(ALIVE, 101.0)
    assert old is not None
    leader.assign(replace(leader.assignment, partition_epoch=9), 10, 101.5)
    assert leader.propose(ALIVE, 101.5) is not None
    leader.handle_rejection(old, ProposalRejection.OF_MEMBERS)
    assert leader.propose(ALIVE, 102.0) is None


def test_a_follower_was_caught_up_when_it_fetched_the_end_it_now_has(leader: Leader) -> None:
    fetch(leader, 3, 10, now=101.0)
    fetch(leader, 2, 8, now=102.0)
    leader.append(12)
    fetch(leader, 2, 10, now=125.0)
    assert leader.find_lagging(132.0) == {3}
    assert leader.find_lagging(132.1) == {2, 3}


def test_a_follower_behind_within_the_lag_time_is_in_sync(leader: Leader) -> None:
    fetch(leader, 2, 10, now=101.0)
    leader.append(11)
    assert leader.find_lagging(130.0) == set()
    assert leader.find_lagging(130.5) == {3}
    assert leader.followers[2].lag(11, 104.0) == 3.0


def test_a_fetch_from_a_broker_without_a_replica_is_ignored(leader: Leader) -> None:
    assert not leader.fetch(4, 10, 14, 101.0)
    leader.record_idle_fetch(4, 101.0)
    assert not leader.is_level(4)


def test_a_connected_replica_far_behind_is_not_waited_for() -> None:
    leader = shrunk()
    fetch(leader, 3, 2)
    fetch(leader, 2, 10)
    assert leader.high_watermark == 10


def test_an_ineligible_replica_is_not_waited_for() -> None:
    leader = shrunk()
    fetch(leader, 3, 10, epoch=12)
    leader.append(12)
    fetch(leader, 2, 12)
    assert leader.high_watermark == 12


def test_the_default_lag_time_is_thirty_seconds() -> None:
    leader = Leader(1, LED, 10, 6, now=100.0)
    leader.append(11)
    assert (leader.find_lagging(130.0), leader.find_lagging(130.1)) == (set(), {2, 3})


def test_a_replica_removed_from_the_isr_must_fetch_before_it_joins(leader: Leader) -> None:
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


def test_a_caught_up_follower_not_named_in_a_session_fetch_was_caught_up_then(leader: Leader) -> None:
    fetch(leader, 2, 10, now=101.0)
    fetch(leader, 3, 10, now=101.0)
    leader.record_idle_fetch(2, 200.0)
    leader.append(11)
    assert leader.find_lagging(210.0) == {3}
    leader.record_idle_fetch(2, 220.0)
    assert leader.find_lagging(231.0) == {2, 3}, "behind now: what it asks for without naming it is not what is new"


def test_a_replica_removed_from_the_isr_is_not_caught_up_before_it_fetches(leader: Leader) -> None:
    fetch(leader, 2, 10)
    assert leader.is_level(2)
    leader.assign(replace(LED, partition_epoch=9, in_sync=frozenset({1, 3})), 10, 102.0)
    leader.record_idle_fetch(2, 103.0)
    assert not leader.is_level(2)
    fetch(leader, 2, 10)
    assert leader.is_level(2)
