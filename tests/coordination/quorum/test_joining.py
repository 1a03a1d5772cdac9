"""A replica whose voters record is wrong requests a change once, and only when it knows the high watermark."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from ottla.coordination.quorum.config import QuorumConfig
from ottla.coordination.quorum.events import AppendControlRecords, LogChanged, RequestReceived, Tick
from ottla.coordination.quorum.log_shape import LogShape, SnapshotId
from ottla.coordination.quorum.raft import Raft, SnapshotFetch
from ottla.coordination.quorum.state import ElectionState
from ottla.coordination.quorum.voter_changes import OwnEntry
from ottla.coordination.quorum.voters import ReplicaKey, VoterSet
from ottla.coordination.quorum.voters_record import Endpoint, KRaftVersionFeature, Voter
from ottla.protocol.messages.add_raft_voter import AddRaftVoterRequest
from ottla.protocol.messages.remove_raft_voter import RemoveRaftVoterRequest
from ottla.protocol.messages.update_raft_voter import UpdateRaftVoterRequest
from tests.coordination.quorum.test_raft import FIRST, ME, OTHER, VOTERS, fetches, leading

HERE = (Endpoint("CONTROLLER", "here", 9093), Endpoint("OTHER", "here", 9094))
CONFIG = QuorumConfig(fetch_timeout_ms=2000, request_timeout_ms=700)
END = 10


def voters_with(*endpoints: Endpoint, feature: tuple[int, int] = (0, 1), key: ReplicaKey = ME) -> VoterSet:
    """Return voters that include this replica, as recorded."""
    others = [Voter(2, OTHER.directory_id, [], KRaftVersionFeature(0, 1))]
    return VoterSet([Voter(*key, list(endpoints), KRaftVersionFeature(*feature)), *others])


def replica(voters: VoterSet, *, endpoints: tuple[Endpoint, ...] = HERE, joins: bool = False) -> Raft:
    """Return a replica that has every record the leader reported as committed."""
    log = LogShape(0, END, ((3, 0),), END, voters=voters)
    entry = OwnEntry(endpoints, auto_join=joins)
    raft = Raft(ME, "cluster", log, ElectionState(3), CONFIG, 5.0, 0.0, own_entry=entry)
    raft._has_leader_answered, raft._leader_high_watermark = True, END
    return raft


def places(request: Any) -> list[tuple[str, str, int]]:
    return [(each.name, each.host, each.port) for each in request.listeners]


def test_a_moved_voter_reports_its_endpoint_and_repeats_it_after_the_fetch_timeout() -> None:
    raft = replica(voters_with(Endpoint("CONTROLLER", "there", 1)))
    request = raft._entry_request()
    assert isinstance(request, UpdateRaftVoterRequest)
    assert (request.cluster_id, request.current_leader_epoch, request.voter_id) == ("cluster", 3, 1)
    assert request.voter_directory_id == ME.directory_id
    assert places(request) == [("CONTROLLER", "here", 9093), ("OTHER", "here", 9094)]
    for now, asks in [(5.0, False), (6.99, False), (7.0, True), (7.0, False), (9.0, True)]:
        raft._now = now
        assert (raft._entry_request() is not None) == asks, now


def is_early(raft: Raft) -> None:
    raft._update_entry_at = raft.now + 0.01


def has_fixed_voters(raft: Raft) -> None:
    raft.log = raft.log._replace(kraft_version=0)


def reset_responses(raft: Raft) -> None:
    raft._has_leader_answered = False


def knows_no_watermark(raft: Raft) -> None:
    raft._leader_high_watermark = -1


def lacks_something(raft: Raft) -> None:
    raft._leader_high_watermark = END + 1


def fetches_a_snapshot(raft: Raft) -> None:
    raft._snapshot_fetch = SnapshotFetch(SnapshotId(20, 3), 0)


@pytest.mark.parametrize(
    "hinder",
    [is_early, has_fixed_voters, reset_responses, knows_no_watermark, lacks_something, fetches_a_snapshot],
)
def test_no_request_to_join_is_sent_before_the_high_watermark_is_known(hinder: Callable[[Raft], None]) -> None:
    raft = replica(voters_with())
    hinder(raft)
    assert raft._entry_request() is None
    assert raft._update_entry_at <= raft.now + 0.01, "it may ask as soon as nothing is in its way"


@pytest.mark.parametrize("watermark", [0, 1, END])
def test_a_replica_ahead_of_the_high_watermark_knows_the_high_watermark(watermark: int) -> None:
    raft = replica(voters_with())
    raft._leader_high_watermark = watermark
    assert raft._entry_request() is not None


@pytest.mark.parametrize(
    ("voters", "asks"),
    [
        (voters_with(*HERE), False),
        (voters_with(*reversed(HERE)), False),
        (voters_with(HERE[1], Endpoint("controller", "here", 9093)), False),
        (voters_with(HERE[0]), True),
        (voters_with(HERE[0], Endpoint("OTHER", "here", 1)), True),
        (voters_with(*HERE, feature=(0, 2)), True),
        (voters_with(*HERE, feature=(1, 1)), True),
    ],
)
def test_a_record_is_right_whatever_the_order_of_listeners_and_the_case_of_their_names(
    voters: VoterSet, asks: bool
) -> None:
    assert (replica(voters)._entry_request() is not None) == asks


@pytest.mark.parametrize("joins", [True, False])
def test_a_replica_without_known_endpoints_does_not_change_the_record(joins: bool) -> None:
    assert replica(voters_with(), endpoints=(), joins=joins)._entry_request() is None
    assert replica(VOTERS.without(1), endpoints=(), joins=joins)._entry_request() is None


def test_an_automatic_voter_joins_without_waiting_for_the_commit() -> None:
    assert replica(VOTERS.without(1))._entry_request() is None
    request = replica(VOTERS.without(1), joins=True)._entry_request()
    assert isinstance(request, AddRaftVoterRequest)
    assert (request.cluster_id, request.timeout_ms, request.ack_when_committed) == ("cluster", 700, False)
    assert (request.voter_id, request.voter_directory_id) == ME
    assert places(request) == [("CONTROLLER", "here", 9093), ("OTHER", "here", 9094)]


def test_a_voter_with_a_new_disk_first_removes_its_old_directory() -> None:
    before = ReplicaKey(1, UUID(int=77))
    request = replica(voters_with(*HERE, key=before), joins=True)._entry_request()
    assert isinstance(request, RemoveRaftVoterRequest)
    assert (request.cluster_id, request.voter_id, request.voter_directory_id) == ("cluster", *before)


def leader(voters: VoterSet, *, committed: bool = True) -> Raft:
    """One that has committed something, and is here."""
    raft = leading()
    if committed:
        raft.step(RequestReceived(1, fetches()), 9.1, 0.0)
    raft.own_entry, raft.log = OwnEntry(HERE), FIRST._replace(voters=voters)
    return raft


def written(raft: Raft, now: float) -> list[list[Endpoint]]:
    """Return the endpoints of this replica in each voters record that it appends."""
    done = raft.step(Tick(), now, 0.0)
    records: list[Any] = [record for wish in done if isinstance(wish, AppendControlRecords) for record in wish.records]
    return [each.endpoints for record in records for each in record.voters if each.voter_id == 1]


def test_a_moved_leader_updates_its_own_record_once() -> None:
    raft = leader(VOTERS)
    assert written(raft, 9.2) == [[*HERE]]
    assert raft._update_entry_at == 9.2 + raft._config.fetch_timeout_ms / 1000
    assert written(raft, 9.3) == []
    corrected = VoterSet([Voter(*ME, list(HERE), KRaftVersionFeature(0, 1)), *list(VOTERS.voters.values())[1:]])
    raft.step(LogChanged(FIRST._replace(end=2, durable=2, voters=corrected, voters_end=2)), 9.4, 0.0)
    assert written(raft, 12.0) == []


def test_a_leader_with_a_correct_record_changes_nothing() -> None:
    right = VoterSet([Voter(*ME, list(HERE), KRaftVersionFeature(0, 1)), *list(VOTERS.voters.values())[1:]])
    assert written(leader(right), 9.2) == []


def test_a_leader_changes_nothing_before_its_time_or_without_a_vote_or_with_nothing_committed() -> None:
    early = leader(VOTERS)
    early._update_entry_at = 9.5
    assert (written(early, 9.4), written(early, 9.5)) == ([], [[*HERE]])
    assert written(leader(VOTERS, committed=False), 9.2) == []
    gone = leader(VOTERS)
    gone.log = FIRST._replace(voters=VOTERS.without(1))
    gone._correct_own_entry()
    assert gone._voter_change is None
