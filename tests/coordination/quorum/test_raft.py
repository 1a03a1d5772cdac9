"""One replica of the quorum, with requests from other voters and from unknown nodes."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from ottla.coordination.quorum import wire
from ottla.coordination.quorum.config import QuorumConfig
from ottla.coordination.quorum.events import (
    Action,
    AdvanceHighWatermark,
    AppendControlRecords,
    AppendFetched,
    Halt,
    LeaderChanged,
    LogChanged,
    PeerConnected,
    PersistElectionState,
    ReportProblem,
    RequestFailed,
    RequestReceived,
    ResponseReceived,
    SendRecords,
    SendRequest,
    SendResponse,
    SendSnapshotChunk,
    ShutDown,
    Tick,
    TruncateLog,
)
from ottla.coordination.quorum.log_shape import LogShape, SnapshotId
from ottla.coordination.quorum.raft import Raft
from ottla.coordination.quorum.state import ElectionState, State
from ottla.coordination.quorum.voters import ReplicaKey, VoterSet
from ottla.errors import ErrorCode
from ottla.protocol.messages.begin_quorum_epoch import BeginQuorumEpochRequest
from ottla.protocol.messages.fetch import EpochEndOffset, FetchResponse
from ottla.protocol.messages.vote import VoteRequest, VoteResponse
from ottla.protocol.schema import Message

KEYS = [ReplicaKey(id_, UUID(int=id_)) for id_ in (1, 2, 3)]
ME, OTHER, THIRD = KEYS
VOTERS = VoterSet.of(*KEYS)
LOG = LogShape(0, 10, ((1, 0), (3, 5)), 10, voters=VOTERS, voters_end=3)
CONFIG = QuorumConfig()


def replica(saved: ElectionState | None = None, log: LogShape = LOG) -> Raft:
    """One that was started a second ago, in epoch 3 of its log."""
    return Raft(ME, "cluster", log, saved or ElectionState(log.epoch), CONFIG, 0.0, 0.0)


def list_actions(raft: Raft, event: Any, now: float = 0.1) -> list[Action]:
    """Return the actions except periodic requests."""
    done = raft.step(event, now, 0.0)
    raft.check()
    return [wish for wish in done if not isinstance(wish, SendRequest)]


def vote_request(epoch: int, end: int = 10, last: int = 3, *, pre_vote: bool = False, who: ReplicaKey = OTHER) -> Any:
    log = LogShape(0, end, ((last, 0),))
    return wire.vote_request("cluster", who, ME, epoch, log, pre_vote=pre_vote)


def answered(done: list[Action]) -> Any:
    """The partition of the one answer among them."""
    (answer,) = [wish for wish in done if isinstance(wish, SendResponse)]
    return wire.metadata_partition(answer.response)


def test_a_vote_is_on_the_disk_before_it_is_answered() -> None:
    done = list_actions(replica(), RequestReceived(1, vote_request(4)))
    assert done[:-1] == [
        PersistElectionState(ElectionState(4)),
        LeaderChanged(None, 4),
        PersistElectionState(ElectionState(4, None, OTHER)),
    ]
    assert answered(done).vote_granted


def test_a_second_vote_in_an_epoch_is_rejected_even_after_a_restart() -> None:
    raft = replica(ElectionState(4, None, OTHER))
    assert answered(list_actions(raft, RequestReceived(1, vote_request(4)))).vote_granted
    assert not answered(list_actions(raft, RequestReceived(2, vote_request(4, who=THIRD)))).vote_granted
    assert not answered(
        list_actions(raft, RequestReceived(3, vote_request(4, who=OTHER._replace(directory_id=UUID(int=9)))))
    ).vote_granted


@pytest.mark.parametrize(("end", "last", "granted"), [(10, 3, True), (9, 3, False), (99, 2, False), (11, 3, True)])
def test_a_candidate_with_a_shorter_log_gets_no_vote(end: int, last: int, granted: bool) -> None:
    assert answered(list_actions(replica(), RequestReceived(1, vote_request(4, end, last)))).vote_granted is granted


def test_a_pre_vote_binds_no_voter() -> None:
    raft = replica()
    done = list_actions(raft, RequestReceived(1, vote_request(3, pre_vote=True)))
    assert answered(done).vote_granted
    assert not [wish for wish in done if isinstance(wish, PersistElectionState)]
    assert raft._voted is None


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (vote_request(2, last=1), ErrorCode.FENCED_LEADER_EPOCH),
        (vote_request(4, last=4), ErrorCode.INVALID_REQUEST),
        (vote_request(4, end=-1), ErrorCode.INVALID_REQUEST),
        (vote_request(4, who=ReplicaKey(-1)), ErrorCode.INVALID_REQUEST),
        (wire.vote_request("cluster", OTHER, THIRD, 4, LOG, pre_vote=False), ErrorCode.INVALID_VOTER_KEY),
        (wire.begin_request("cluster", 2, ME, 2, []), ErrorCode.FENCED_LEADER_EPOCH),
        (wire.begin_request("cluster", 2, THIRD, 4, []), ErrorCode.INVALID_VOTER_KEY),
        (wire.end_request("cluster", -1, 4, [], []), ErrorCode.INVALID_REQUEST),
        (wire.fetch_request("cluster", OTHER, 3, LOG, -1, 500, 100), ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (wire.fetch_request("cluster", OTHER, 9, LOG, -1, 500, 100), ErrorCode.UNKNOWN_LEADER_EPOCH),
        (wire.fetch_request("cluster", OTHER, 2, LOG, -1, 500, 100), ErrorCode.INVALID_REQUEST),
        (wire.snapshot_request("cluster", OTHER, 3, SnapshotId(5, 1), 0, 9), ErrorCode.NOT_LEADER_OR_FOLLOWER),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Message) else None,
)
def test_invalid_requests_are_rejected_with_kafkas_errors(request_: Message, code: ErrorCode) -> None:
    assert answered(list_actions(replica(), RequestReceived(1, request_))).error_code == code


def test_requests_for_another_cluster_or_topic_are_rejected_as_a_whole() -> None:
    reported, stranger = list_actions(replica(), RequestReceived(1, VoteRequest("another")))
    (lost,) = list_actions(replica(), RequestReceived(1, BeginQuorumEpochRequest("cluster")))
    assert isinstance(reported, ReportProblem)
    assert "a node of another cluster ('another') sends requests to this node of cluster cluster" in reported.sentence
    assert isinstance(stranger, SendResponse)
    assert isinstance(lost, SendResponse)
    assert getattr(stranger.response, "error_code", 0) == ErrorCode.INCONSISTENT_CLUSTER_ID
    assert getattr(lost.response, "error_code", 0) == ErrorCode.INVALID_REQUEST


def list_requests(raft: Raft, now: float) -> dict[int, int]:
    """Return the numbers of the requests to the other nodes, which have not responded in time."""
    return {wish.to: wish.number for wish in raft.step(Tick(), now, 0.0) if isinstance(wish, SendRequest)}


def refused(raft: Raft, other: int, number: int) -> list[Action]:
    """Return the actions after another node reports another cluster id."""
    return list_actions(raft, ResponseReceived(other, number, VoteResponse(ErrorCode.INCONSISTENT_CLUSTER_ID)), 2.5)


def test_one_voter_of_another_cluster_is_logged_and_stops_no_node() -> None:
    raft = replica()
    numbers = list_requests(raft, 2.5)
    (reported,) = refused(raft, 2, numbers[2])
    assert isinstance(reported, ReportProblem)
    assert (
        "node 2 belongs to another cluster than this node, which belongs to cluster: compare cluster.id"
        in reported.sentence
    )
    list_actions(raft, ResponseReceived(3, numbers[3], raft._responses.vote_response(0, granted=True)), 2.5)
    assert raft.state is State.CANDIDATE


def test_a_node_with_another_cluster_id_than_the_majority_stops() -> None:
    raft = replica()
    numbers = list_requests(raft, 2.5)
    refused(raft, 2, numbers[2])
    (failed,) = refused(raft, 3, numbers[3])
    assert isinstance(failed, Halt)
    assert (
        "node 3 belongs to another cluster than this node, which belongs to cluster: compare cluster.id"
        in failed.sentence
    )


def test_a_later_valid_response_clears_the_foreign_cluster_mark() -> None:
    raft = replica()
    numbers = list_requests(raft, 2.5)
    refused(raft, 2, numbers[2])
    again = list_requests(raft, 3.4)
    list_actions(raft, ResponseReceived(2, again[2], raft._responses.vote_response(0, granted=False)), 3.4)
    assert not [wish for wish in refused(raft, 3, numbers[3]) if isinstance(wish, Halt)]


def test_an_observer_stops_if_all_its_peers_are_of_another_cluster() -> None:
    raft = Raft(ME, "cluster", LogShape(0, 0, ()), ElectionState(0), CONFIG, 0.0, 0.0, bootstrap=[-2, -3])
    found = raft.step(Tick(), 0.1, 0.0)
    kinds = []
    for _ in range(2):
        asked = next(wish for wish in found if isinstance(wish, SendRequest))
        refusal = FetchResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID)
        found = raft.step(ResponseReceived(asked.to, asked.number, refusal), 0.1, 0.0)
        kinds += [type(wish) for wish in found if isinstance(wish, ReportProblem | Halt)]
    assert kinds == [ReportProblem, Halt]


def test_a_restarted_leader_neither_leads_nor_votes_in_its_epoch() -> None:
    raft = replica(ElectionState(4, 1, ME))
    assert raft.state is State.RESIGNED
    assert not answered(list_actions(raft, RequestReceived(1, vote_request(4)))).vote_granted
    list_actions(raft, Tick(), 1.1)
    assert (raft.state, raft.epoch) == (State.UNATTACHED, 5)


def test_a_restarted_candidate_is_a_candidate_for_the_same_epoch() -> None:
    raft = replica(ElectionState(4, None, ME))
    sent = [wish for wish in raft.step(Tick(), 0.1, 0.0) if isinstance(wish, SendRequest)]
    assert raft.state is State.CANDIDATE
    assert sorted(wish.to for wish in sent) == [2, 3]


def test_an_election_state_older_than_the_log_is_ignored() -> None:
    raft = replica(ElectionState(2, 2, OTHER))
    assert (raft.state, raft.epoch, raft._voted) == (State.UNATTACHED, 3, None)


def test_two_leaders_of_one_epoch_stop_the_process() -> None:
    raft = replica()
    list_actions(raft, RequestReceived(1, wire.begin_request("cluster", 2, ME, 4, [])))
    done = list_actions(raft, RequestReceived(2, wire.begin_request("cluster", 3, ME, 4, [])))
    assert "nodes 2 and 3 both lead the quorum in epoch 4" in next(w for w in done if isinstance(w, Halt)).sentence


def following() -> tuple[Raft, SendRequest]:
    """One that follows node 2 in epoch 4, and the fetch that it has sent."""
    raft = replica()
    done = raft.step(RequestReceived(1, wire.begin_request("cluster", 2, ME, 4, [])), 0.1, 0.0)
    return raft, next(wish for wish in done if isinstance(wish, SendRequest))


def response(**said: Any) -> FetchResponse:
    answer: Any = wire.ResponseBuilder(4, 2, []).fetch_response(0, 10, 0)
    for name, value in said.items():
        setattr(wire.metadata_partition(answer), name, value)
    return answer  # type: ignore[no-any-return]


@pytest.mark.parametrize(("is_gone", "becomes"), [(True, State.PROSPECTIVE), (False, State.FOLLOWER)])
def test_a_follower_starts_an_election_soon_after_the_leaders_process_ends(is_gone: bool, becomes: State) -> None:
    raft, fetch = following()
    raft.step(RequestFailed(2, fetch.number, is_gone), 0.2, 0.5)
    assert raft.state is State.FOLLOWER
    raft.step(Tick(), 0.2 + CONFIG.election_timeout_ms / 1000 / 8, 0.0)
    assert raft.state is becomes


def rounds(raft: Raft, count: int, *, is_gone: bool) -> list[float]:
    """Return the time that it waits for votes in each of `count` attempts without responses."""
    now, spans = raft.now + 10, list[float]()
    while len(spans) < count:
        raft.step(Tick(), now, 0.0)
        if raft.state is State.PROSPECTIVE:
            spans.append(raft._deadline - now)
            if is_gone:
                for voter in (2, 3):
                    raft.step(RequestFailed(voter, raft._requests.start_request(voter, now), has_ended=True), now, 0.0)
        now = raft._deadline
    return spans


def test_the_election_timeout_grows_with_each_attempt_up_to_a_limit() -> None:
    assert rounds(replica(), 6, is_gone=False) == pytest.approx([1, 1, 2, 4, 4, 4])


def test_the_election_timeout_does_not_grow_if_too_few_voters_run() -> None:
    assert rounds(replica(), 6, is_gone=True) == pytest.approx([1] * 6)


def test_the_election_timeout_is_reset_by_a_leader() -> None:
    raft = replica()
    rounds(raft, 5, is_gone=False)
    done = raft.step(RequestReceived(1, wire.begin_request("cluster", 2, ME, 4, [])), 30.0, 0.0)
    fetch = next(wish for wish in done if isinstance(wish, SendRequest))
    raft.step(ResponseReceived(2, fetch.number, response()), 30.0, 0.0)
    assert rounds(raft, 2, is_gone=False) == pytest.approx([1, 1])


def test_the_next_fetch_waits_for_the_flush_of_the_last() -> None:
    raft, fetch = following()
    done = raft.step(ResponseReceived(2, fetch.number, response(records=b"batch")), 0.2, 0.0)
    assert done == [AppendFetched(b"batch", 4)]
    assert raft.step(Tick(), 0.3, 0.0) == []
    done = raft.step(LogChanged(LOG._replace(end=11, durable=11)), 0.4, 0.0)
    assert [wish.to for wish in done if isinstance(wish, SendRequest)] == [2]


def test_no_election_starts_while_the_log_is_written() -> None:
    raft, fetch = following()
    raft.step(ResponseReceived(2, fetch.number, response(records=b"batch")), 0.2, 0.0)
    states = [raft.state]
    for event in (Tick(), LogChanged(LOG._replace(end=11, durable=11))):
        raft.step(event, 9.0, 0.0)
        states.append(raft.state)
    assert states == [State.FOLLOWER, State.FOLLOWER, State.PROSPECTIVE]


def test_a_diverging_log_is_truncated_but_never_below_the_high_watermark() -> None:
    raft, fetch = following()
    done = raft.step(ResponseReceived(2, fetch.number, response(diverging_epoch=EpochEndOffset(1, 4))), 0.2, 0.0)
    assert done == [TruncateLog(4)]

    raft, fetch = following()
    raft._advance_high_watermark(8)
    done = raft.step(ResponseReceived(2, fetch.number, response(diverging_epoch=EpochEndOffset(1, 4))), 0.2, 0.0)
    assert any(isinstance(wish, Halt) and "offset 8 was committed" in wish.sentence for wish in done)


def test_a_repeated_or_mismatched_response_is_ignored() -> None:
    raft, fetch = following()
    assert raft.step(ResponseReceived(2, fetch.number + 1, response(records=b"batch")), 0.2, 0.0) == []
    raft.step(ResponseReceived(2, fetch.number, response(records=b"batch")), 0.2, 0.0)
    assert raft.step(ResponseReceived(2, fetch.number, response(records=b"batch")), 0.2, 0.0) == []


def test_a_single_voter_leads_with_its_first_step_and_stops_without_waiting() -> None:
    raft = replica(log=LogShape(voters=VoterSet.of(ME)))
    done = raft.step(Tick(), 0.0, 0.0)
    assert [type(wish) for wish in done] == [
        PersistElectionState,
        LeaderChanged,
        PersistElectionState,
        LeaderChanged,
        AppendControlRecords,
    ]
    raft.step(ShutDown(), 0.1, 0.0)
    assert raft.state is State.RESIGNED
    assert raft.wake_at == float("inf")


DECIDED = LOG._replace(holds_metadata=True)


def test_a_node_that_cannot_be_controller_starts_no_election_for_a_log_with_metadata() -> None:
    raft = replica(log=DECIDED)
    for now in (5.0, 10.0, 15.0):
        assert list_actions(raft, Tick(), now) == []
        assert raft.state is State.UNATTACHED
    assert answered(raft.step(RequestReceived(1, vote_request(4, pre_vote=True)), 16.0, 0.0)).vote_granted
    assert answered(raft.step(RequestReceived(2, vote_request(4)), 16.0, 0.0)).vote_granted


def test_a_follower_that_is_no_candidate_grants_pre_votes_once_its_leader_is_silent() -> None:
    raft, fetch = following()
    raft.step(LogChanged(DECIDED), 0.2, 0.0)
    raft.step(ResponseReceived(2, fetch.number, response()), 0.3, 0.0)
    assert not answered(raft.step(RequestReceived(2, vote_request(4, pre_vote=True, who=THIRD)), 0.4, 0.0)).vote_granted

    raft.step(Tick(), 9.0, 0.0)
    assert raft.state is State.FOLLOWER
    assert answered(raft.step(RequestReceived(3, vote_request(4, pre_vote=True, who=THIRD)), 9.1, 0.0)).vote_granted
    assert answered(raft.step(RequestReceived(4, vote_request(5, who=THIRD)), 9.2, 0.0)).vote_granted


def test_a_former_candidate_that_cannot_be_controller_starts_no_election() -> None:
    assert replica(ElectionState(5, None, ME), DECIDED).state is State.UNATTACHED
    alone = replica(log=DECIDED._replace(voters=VoterSet.of(ME)))
    assert list_actions(alone, Tick(), 9.0) == []


def state_after(raft: Raft, event: Any, now: float) -> State:
    raft.step(event, now, 0.0)
    raft.check()
    return raft.state


def test_a_leader_that_cannot_be_controller_resigns_for_a_caught_up_voter_that_can() -> None:
    raft = replica(ElectionState(), LogShape(voters=VOTERS))
    done = raft.step(Tick(), 9.0, 0.0)
    for epoch in (0, 1):
        ask = next(wish for wish in done if isinstance(wish, SendRequest))
        granted: Any = wire.ResponseBuilder(epoch, None, []).vote_response(0, granted=True)
        done = raft.step(ResponseReceived(ask.to, ask.number, granted), 9.1, 0.0)
    written = LogShape(0, 1, ((1, 0),), 1, voters=VOTERS)
    raft.step(LogChanged(written), 9.1, 0.0)
    assert state_after(raft, PeerConnected(7, True), 9.2) is State.LEADER
    assert state_after(raft, PeerConnected(3, True), 9.2) is State.LEADER

    for who, then in ((OTHER, State.LEADER), (THIRD, State.RESIGNED)):
        fetch = wire.fetch_request("cluster", who, 1, written, 0, 500, 1000)
        assert state_after(raft, RequestReceived(who.id, fetch), 9.3) is then
    assert raft._successors[0] == THIRD


@pytest.mark.parametrize(
    ("preferred", "seconds"),
    [([THIRD, ME], 1.0), ([THIRD, ME, KEYS[1]], 0.5), ([THIRD], 1.0), ([], 1.0)],
)
def test_a_less_preferred_successor_delays_its_election(preferred: list[ReplicaKey], seconds: float) -> None:
    raft, _ = following()
    raft.step(RequestReceived(1, wire.end_request("cluster", 2, 4, preferred, [])), 1.0, 0.0)
    assert (raft.state, raft._deadline) == (State.FOLLOWER, 1.0 + seconds)


def test_the_preferred_successor_starts_an_election_at_once() -> None:
    raft, _ = following()
    raft.step(RequestReceived(1, wire.end_request("cluster", 2, 4, [ME, THIRD], [])), 1.0, 0.0)
    assert raft.state is State.PROSPECTIVE


def test_a_follower_of_a_resigned_leader_grants_pre_votes_at_once() -> None:
    raft, fetch = following()
    raft.step(ResponseReceived(2, fetch.number, response()), 0.2, 0.0)
    ask = RequestReceived(1, vote_request(4, pre_vote=True, who=THIRD))
    assert not answered(raft.step(ask, 0.3, 0.0)).vote_granted
    raft.step(RequestReceived(2, wire.end_request("cluster", 2, 4, [THIRD], [])), 0.4, 0.0)
    assert answered(raft.step(ask, 0.5, 0.0)).vote_granted


FIRST = LogShape(0, 1, ((1, 0),), 1, voters=VOTERS)
"""A log with nothing but its leader's first record."""


def leading() -> Raft:
    """Return a leader elected by two others in epoch 1, with its first record on its own disk."""
    raft = Raft(ME, "cluster", LogShape(voters=VOTERS), ElectionState(), CONFIG, 0.0, 0.0, can_be_controller=True)
    done = raft.step(Tick(), 9.0, 0.0)
    for epoch in (0, 1):
        ask = next(wish for wish in done if isinstance(wish, SendRequest))
        granted: Any = wire.ResponseBuilder(epoch, None, []).vote_response(0, granted=True)
        done = raft.step(ResponseReceived(ask.to, ask.number, granted), 9.0, 0.0)
    raft.step(LogChanged(FIRST), 9.0, 0.0)
    return raft


def fetches(log: LogShape = FIRST, committed: int = 1, who: ReplicaKey = OTHER, wait_ms: int = 500) -> Any:
    return wire.fetch_request("cluster", who, 1, log, committed, wait_ms, 1000)


def answers(done: list[Action]) -> list[int]:
    """The tickets that are answered."""
    return [wish.ticket for wish in done if isinstance(wish, SendResponse | SendRecords)]


def test_replicated_records_are_committed_by_the_next_fetch_and_announced_at_once() -> None:
    raft = leading()
    assert raft.high_watermark == 0
    done = raft.step(RequestReceived(1, fetches(committed=0)), 9.1, 0.0)
    assert AdvanceHighWatermark(1) in done
    assert answered(done).high_watermark == 1


def test_a_fetch_without_new_records_waits_for_its_maximum_time() -> None:
    raft = leading()
    assert answers(raft.step(RequestReceived(1, fetches()), 9.1, 0.0)) == []
    assert raft.wake_at <= 9.6
    assert answers(raft.step(Tick(), 9.5, 0.0)) == []
    assert answers(raft.step(Tick(), 9.6, 0.0)) == [1]
    assert answers(raft.step(RequestReceived(2, fetches(wait_ms=0)), 9.7, 0.0)) == [2]


def test_a_waiting_fetch_is_answered_as_soon_as_there_are_records() -> None:
    raft = leading()
    raft.step(RequestReceived(1, fetches()), 9.1, 0.0)
    (answer,) = raft.step(LogChanged(FIRST._replace(end=2)), 9.2, 0.0)
    assert isinstance(answer, SendRecords)
    assert (answer.ticket, answer.offset, answer.max_bytes) == (1, 1, 1000)


def test_a_diverging_follower_gets_the_divergence_and_does_not_count() -> None:
    raft = leading()
    parted = answered(raft.step(RequestReceived(1, fetches(LogShape(0, 5, ((0, 0),)))), 9.1, 0.0))
    assert (parted.diverging_epoch.epoch, parted.diverging_epoch.end_offset) == (0, 0)
    assert raft.high_watermark == 0


def test_a_follower_behind_the_log_start_is_sent_the_snapshot_id() -> None:
    raft = leading()
    shape = LogShape(8, 12, ((1, 8),), 12, SnapshotId(8, 1), 1, VOTERS)
    raft.step(LogChanged(shape), 9.1, 0.0)
    sent = answered(raft.step(RequestReceived(1, fetches(LogShape(0, 5, ((1, 0),)))), 9.2, 0.0))
    assert (sent.snapshot_id.end_offset, sent.snapshot_id.epoch, sent.log_start_offset) == (8, 1, 8)


def test_an_observer_does_not_advance_the_high_watermark() -> None:
    raft = leading()
    raft.step(RequestReceived(1, fetches(who=ReplicaKey(9, UUID(int=9)))), 9.1, 0.0)
    raft.step(RequestReceived(2, fetches(who=ReplicaKey(-1))), 9.1, 0.0)
    assert raft.high_watermark == 0


def test_fetches_waiting_at_a_resigning_leader_are_answered_at_once() -> None:
    raft = leading()
    raft.step(RequestReceived(1, fetches()), 9.1, 0.0)
    done = raft.step(RequestReceived(2, wire.begin_request("cluster", 2, ME, 3, [])), 9.2, 0.0)
    reported = next(
        wire.metadata_partition(wish.response) for wish in done if isinstance(wish, SendResponse) and wish.ticket == 1
    )
    assert reported is not None
    assert reported.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_leader_without_fetches_from_a_majority_resigns() -> None:
    raft = leading()
    assert state_after(raft, Tick(), 11.9) is State.LEADER
    assert state_after(raft, Tick(), 12.0) is State.RESIGNED


@pytest.mark.parametrize(("position", "code"), [(0, 0), (-1, ErrorCode.POSITION_OUT_OF_RANGE)])
def test_a_snapshot_chunk_is_sent_only_for_a_valid_position(position: int, code: int) -> None:
    request = wire.snapshot_request("cluster", OTHER, 1, SnapshotId(8, 1), position, 100)
    (wish,) = [
        each for each in leading().step(RequestReceived(1, request), 9.1, 0.0) if not isinstance(each, SendRequest)
    ]
    assert isinstance(wish, SendResponse if code else SendSnapshotChunk)
    partition = wire.metadata_partition(wish.response)
    assert partition is not None
    assert partition.error_code == code
