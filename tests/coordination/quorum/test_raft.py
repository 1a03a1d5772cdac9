"""One replica of the quorum, asked by others and by strangers."""

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


def wishes(raft: Raft, event: Any, now: float = 0.1) -> list[Action]:
    """What it wants, but for questions that it would ask anyhow."""
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
    done = wishes(replica(), RequestReceived(1, vote_request(4)))
    assert done[:-1] == [
        PersistElectionState(ElectionState(4)),
        LeaderChanged(None, 4),
        PersistElectionState(ElectionState(4, None, OTHER)),
    ]
    assert answered(done).vote_granted


def test_nobody_gets_a_second_vote_in_an_epoch_be_it_after_a_new_start() -> None:
    raft = replica(ElectionState(4, None, OTHER))
    assert answered(wishes(raft, RequestReceived(1, vote_request(4)))).vote_granted
    assert not answered(wishes(raft, RequestReceived(2, vote_request(4, who=THIRD)))).vote_granted
    assert not answered(
        wishes(raft, RequestReceived(3, vote_request(4, who=OTHER._replace(directory_id=UUID(int=9)))))
    ).vote_granted


@pytest.mark.parametrize(("end", "last", "granted"), [(10, 3, True), (9, 3, False), (99, 2, False), (11, 3, True)])
def test_who_lacks_something_gets_no_vote(end: int, last: int, granted: bool) -> None:
    assert answered(wishes(replica(), RequestReceived(1, vote_request(4, end, last)))).vote_granted is granted


def test_being_asked_whether_it_would_vote_binds_nobody() -> None:
    raft = replica()
    done = wishes(raft, RequestReceived(1, vote_request(3, pre_vote=True)))
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
def test_what_makes_no_sense_is_refused_with_kafkas_errors(request_: Message, code: ErrorCode) -> None:
    assert answered(wishes(replica(), RequestReceived(1, request_))).error_code == code


def test_another_cluster_and_another_topic_are_refused_as_a_whole() -> None:
    told, stranger = wishes(replica(), RequestReceived(1, VoteRequest("another")))
    (lost,) = wishes(replica(), RequestReceived(1, BeginQuorumEpochRequest("cluster")))
    assert isinstance(told, ReportProblem)
    assert "a node of another cluster ('another') sends requests to this node of cluster cluster" in told.sentence
    assert isinstance(stranger, SendResponse)
    assert isinstance(lost, SendResponse)
    assert getattr(stranger.response, "error_code", 0) == ErrorCode.INCONSISTENT_CLUSTER_ID
    assert getattr(lost.response, "error_code", 0) == ErrorCode.INVALID_REQUEST


def asks(raft: Raft, now: float) -> dict[int, int]:
    """The numbers of what it asks the others, who have not answered in time."""
    return {wish.to: wish.number for wish in raft.step(Tick(), now, 0.0) if isinstance(wish, SendRequest)}


def refused(raft: Raft, other: int, number: int) -> list[Action]:
    """What follows where another says that it is of another cluster."""
    return wishes(raft, ResponseReceived(other, number, VoteResponse(ErrorCode.INCONSISTENT_CLUSTER_ID)), 2.5)


def test_one_voter_of_another_cluster_is_told_of_and_ends_nobody() -> None:
    raft = replica()
    numbers = asks(raft, 2.5)
    (told,) = refused(raft, 2, numbers[2])
    assert isinstance(told, ReportProblem)
    assert (
        "node 2 belongs to another cluster than this node, which belongs to cluster: compare cluster.id"
        in told.sentence
    )
    wishes(raft, ResponseReceived(3, numbers[3], raft._responses.vote_response(0, granted=True)), 2.5)
    assert raft.state is State.CANDIDATE


def test_who_is_of_another_cluster_than_most_ends() -> None:
    raft = replica()
    numbers = asks(raft, 2.5)
    refused(raft, 2, numbers[2])
    (failed,) = refused(raft, 3, numbers[3])
    assert isinstance(failed, Halt)
    assert (
        "node 3 belongs to another cluster than this node, which belongs to cluster: compare cluster.id"
        in failed.sentence
    )


def test_who_answers_otherwise_later_is_of_this_cluster_again() -> None:
    raft = replica()
    numbers = asks(raft, 2.5)
    refused(raft, 2, numbers[2])
    again = asks(raft, 3.4)
    wishes(raft, ResponseReceived(2, again[2], raft._responses.vote_response(0, granted=False)), 3.4)
    assert not [wish for wish in refused(raft, 3, numbers[3]) if isinstance(wish, Halt)]


def test_an_observer_ends_where_all_whom_it_may_ask_are_of_another_cluster() -> None:
    raft = Raft(ME, "cluster", LogShape(0, 0, ()), ElectionState(0), CONFIG, 0.0, 0.0, bootstrap=[-2, -3])
    found = raft.step(Tick(), 0.1, 0.0)
    kinds = []
    for _ in range(2):
        asked = next(wish for wish in found if isinstance(wish, SendRequest))
        refusal = FetchResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID)
        found = raft.step(ResponseReceived(asked.to, asked.number, refusal), 0.1, 0.0)
        kinds += [type(wish) for wish in found if isinstance(wish, ReportProblem | Halt)]
    assert kinds == [ReportProblem, Halt]


def test_who_led_before_it_was_started_neither_leads_nor_votes_in_that_epoch() -> None:
    raft = replica(ElectionState(4, 1, ME))
    assert raft.state is State.RESIGNED
    assert not answered(wishes(raft, RequestReceived(1, vote_request(4)))).vote_granted
    wishes(raft, Tick(), 1.1)
    assert (raft.state, raft.epoch) == (State.UNATTACHED, 5)


def test_who_stood_for_an_epoch_stands_for_it_again() -> None:
    raft = replica(ElectionState(4, None, ME))
    sent = [wish for wish in raft.step(Tick(), 0.1, 0.0) if isinstance(wish, SendRequest)]
    assert raft.state is State.CANDIDATE
    assert sorted(wish.to for wish in sent) == [2, 3]


def test_a_file_that_is_behind_the_log_counts_for_nothing() -> None:
    raft = replica(ElectionState(2, 2, OTHER))
    assert (raft.state, raft.epoch, raft._voted) == (State.UNATTACHED, 3, None)


def test_two_leaders_of_one_epoch_end_the_process() -> None:
    raft = replica()
    wishes(raft, RequestReceived(1, wire.begin_request("cluster", 2, ME, 4, [])))
    done = wishes(raft, RequestReceived(2, wire.begin_request("cluster", 3, ME, 4, [])))
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
def test_who_hears_that_the_leader_s_process_has_ended_stands_soon(is_gone: bool, becomes: State) -> None:
    raft, fetch = following()
    raft.step(RequestFailed(2, fetch.number, is_gone), 0.2, 0.5)
    assert raft.state is State.FOLLOWER
    raft.step(Tick(), 0.2 + CONFIG.election_timeout_ms / 1000 / 8, 0.0)
    assert raft.state is becomes


def rounds(raft: Raft, count: int, *, is_gone: bool) -> list[float]:
    """How long it waits for votes in so many attempts, of which nobody hears."""
    now, spans = raft.now + 10, list[float]()
    while len(spans) < count:
        raft.step(Tick(), now, 0.0)
        if raft.state is State.PROSPECTIVE:
            spans.append(raft._deadline - now)
            if is_gone:
                for voter in (2, 3):
                    raft.step(RequestFailed(voter, raft._requests.start_request(voter, now), is_gone=True), now, 0.0)
        now = raft._deadline
    return spans


def test_votes_that_come_too_late_have_more_time_with_each_attempt_but_not_for_ever() -> None:
    assert rounds(replica(), 6, is_gone=False) == pytest.approx([1, 1, 2, 4, 4, 4])


def test_who_knows_that_too_few_run_does_not_wait_longer_for_them() -> None:
    assert rounds(replica(), 6, is_gone=True) == pytest.approx([1] * 6)


def test_whoever_has_a_leader_is_as_impatient_as_before() -> None:
    raft = replica()
    rounds(raft, 5, is_gone=False)
    done = raft.step(RequestReceived(1, wire.begin_request("cluster", 2, ME, 4, [])), 30.0, 0.0)
    fetch = next(wish for wish in done if isinstance(wish, SendRequest))
    raft.step(ResponseReceived(2, fetch.number, response()), 30.0, 0.0)
    assert rounds(raft, 2, is_gone=False) == pytest.approx([1, 1])


def test_the_next_fetch_waits_until_the_disk_has_what_came() -> None:
    raft, fetch = following()
    done = raft.step(ResponseReceived(2, fetch.number, response(records=b"batch")), 0.2, 0.0)
    assert done == [AppendFetched(b"batch", 4)]
    assert raft.step(Tick(), 0.3, 0.0) == []
    done = raft.step(LogChanged(LOG._replace(end=11, durable=11)), 0.4, 0.0)
    assert [wish.to for wish in done if isinstance(wish, SendRequest)] == [2]


def test_nobody_stands_for_anything_while_its_log_is_written() -> None:
    raft, fetch = following()
    raft.step(ResponseReceived(2, fetch.number, response(records=b"batch")), 0.2, 0.0)
    states = [raft.state]
    for event in (Tick(), LogChanged(LOG._replace(end=11, durable=11))):
        raft.step(event, 9.0, 0.0)
        states.append(raft.state)
    assert states == [State.FOLLOWER, State.FOLLOWER, State.PROSPECTIVE]


def test_a_log_that_parts_from_the_leaders_is_cut_and_never_below_what_is_committed() -> None:
    raft, fetch = following()
    done = raft.step(ResponseReceived(2, fetch.number, response(diverging_epoch=EpochEndOffset(1, 4))), 0.2, 0.0)
    assert done == [TruncateLog(4)]

    raft, fetch = following()
    raft._advance_high_watermark(8)
    done = raft.step(ResponseReceived(2, fetch.number, response(diverging_epoch=EpochEndOffset(1, 4))), 0.2, 0.0)
    assert any(isinstance(wish, Halt) and "offset 8 was committed" in wish.sentence for wish in done)


def test_an_answer_that_comes_twice_or_under_another_number_is_nobodys() -> None:
    raft, fetch = following()
    assert raft.step(ResponseReceived(2, fetch.number + 1, response(records=b"batch")), 0.2, 0.0) == []
    raft.step(ResponseReceived(2, fetch.number, response(records=b"batch")), 0.2, 0.0)
    assert raft.step(ResponseReceived(2, fetch.number, response(records=b"batch")), 0.2, 0.0) == []


def test_who_votes_alone_leads_with_its_first_step_and_leaves_in_peace() -> None:
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


def test_nobody_stands_for_a_log_in_which_somebody_decides_and_others_get_its_vote() -> None:
    raft = replica(log=DECIDED)
    for now in (5.0, 10.0, 15.0):
        assert wishes(raft, Tick(), now) == []
        assert raft.state is State.UNATTACHED
    assert answered(raft.step(RequestReceived(1, vote_request(4, pre_vote=True)), 16.0, 0.0)).vote_granted
    assert answered(raft.step(RequestReceived(2, vote_request(4)), 16.0, 0.0)).vote_granted


def test_a_follower_that_does_not_stand_says_yes_to_others_once_its_leader_is_silent() -> None:
    raft, fetch = following()
    raft.step(LogChanged(DECIDED), 0.2, 0.0)
    raft.step(ResponseReceived(2, fetch.number, response()), 0.3, 0.0)
    assert not answered(raft.step(RequestReceived(2, vote_request(4, pre_vote=True, who=THIRD)), 0.4, 0.0)).vote_granted

    raft.step(Tick(), 9.0, 0.0)
    assert raft.state is State.FOLLOWER
    assert answered(raft.step(RequestReceived(3, vote_request(4, pre_vote=True, who=THIRD)), 9.1, 0.0)).vote_granted
    assert answered(raft.step(RequestReceived(4, vote_request(5, who=THIRD)), 9.2, 0.0)).vote_granted


def test_who_stood_before_and_votes_alone_does_not_stand_where_somebody_has_decided() -> None:
    assert replica(ElectionState(5, None, ME), DECIDED).state is State.UNATTACHED
    alone = replica(log=DECIDED._replace(voters=VoterSet.of(ME)))
    assert wishes(alone, Tick(), 9.0) == []


def state_after(raft: Raft, event: Any, now: float) -> State:
    raft.step(event, now, 0.0)
    raft.check()
    return raft.state


def test_who_leads_gives_way_to_a_voter_who_can_decide_as_soon_as_that_has_the_log() -> None:
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
def test_who_is_not_the_first_to_follow_a_leader_that_goes_waits_its_turn(
    preferred: list[ReplicaKey], seconds: float
) -> None:
    raft, _ = following()
    raft.step(RequestReceived(1, wire.end_request("cluster", 2, 4, preferred, [])), 1.0, 0.0)
    assert (raft.state, raft._deadline) == (State.FOLLOWER, 1.0 + seconds)


def test_whom_a_leader_that_goes_would_have_next_stands_at_once() -> None:
    raft, _ = following()
    raft.step(RequestReceived(1, wire.end_request("cluster", 2, 4, [ME, THIRD], [])), 1.0, 0.0)
    assert raft.state is State.PROSPECTIVE


def test_whose_leader_goes_would_vote_for_another_at_once() -> None:
    raft, fetch = following()
    raft.step(ResponseReceived(2, fetch.number, response()), 0.2, 0.0)
    ask = RequestReceived(1, vote_request(4, pre_vote=True, who=THIRD))
    assert not answered(raft.step(ask, 0.3, 0.0)).vote_granted
    raft.step(RequestReceived(2, wire.end_request("cluster", 2, 4, [THIRD], [])), 0.4, 0.0)
    assert answered(raft.step(ask, 0.5, 0.0)).vote_granted


FIRST = LogShape(0, 1, ((1, 0),), 1, voters=VOTERS)
"""A log with nothing but its leader's first record."""


def leading() -> Raft:
    """One that two others have elected in epoch 1, and whose first record is on its own disk."""
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


def test_what_a_follower_has_is_committed_with_its_next_fetch_and_told_at_once() -> None:
    raft = leading()
    assert raft.high_watermark == 0
    done = raft.step(RequestReceived(1, fetches(committed=0)), 9.1, 0.0)
    assert AdvanceHighWatermark(1) in done
    assert answered(done).high_watermark == 1


def test_a_fetch_that_finds_nothing_is_kept_for_its_time() -> None:
    raft = leading()
    assert answers(raft.step(RequestReceived(1, fetches()), 9.1, 0.0)) == []
    assert raft.wake_at <= 9.6
    assert answers(raft.step(Tick(), 9.5, 0.0)) == []
    assert answers(raft.step(Tick(), 9.6, 0.0)) == [1]
    assert answers(raft.step(RequestReceived(2, fetches(wait_ms=0)), 9.7, 0.0)) == [2]


def test_a_fetch_that_is_kept_is_answered_as_soon_as_there_is_more() -> None:
    raft = leading()
    raft.step(RequestReceived(1, fetches()), 9.1, 0.0)
    (answer,) = raft.step(LogChanged(FIRST._replace(end=2)), 9.2, 0.0)
    assert isinstance(answer, SendRecords)
    assert (answer.ticket, answer.offset, answer.max_bytes) == (1, 1, 1000)


def test_who_has_what_the_leader_lacks_is_told_where_they_part_and_counts_for_nothing() -> None:
    raft = leading()
    parted = answered(raft.step(RequestReceived(1, fetches(LogShape(0, 5, ((0, 0),)))), 9.1, 0.0))
    assert (parted.diverging_epoch.epoch, parted.diverging_epoch.end_offset) == (0, 0)
    assert raft.high_watermark == 0


def test_who_lacks_what_is_only_in_a_snapshot_is_sent_to_that() -> None:
    raft = leading()
    shape = LogShape(8, 12, ((1, 8),), 12, SnapshotId(8, 1), 1, VOTERS)
    raft.step(LogChanged(shape), 9.1, 0.0)
    sent = answered(raft.step(RequestReceived(1, fetches(LogShape(0, 5, ((1, 0),)))), 9.2, 0.0))
    assert (sent.snapshot_id.end_offset, sent.snapshot_id.epoch, sent.log_start_offset) == (8, 1, 8)


def test_nobody_who_reads_along_makes_anything_committed() -> None:
    raft = leading()
    raft.step(RequestReceived(1, fetches(who=ReplicaKey(9, UUID(int=9)))), 9.1, 0.0)
    raft.step(RequestReceived(2, fetches(who=ReplicaKey(-1))), 9.1, 0.0)
    assert raft.high_watermark == 0


def test_who_waits_for_a_leader_that_goes_is_told_at_once_who_leads() -> None:
    raft = leading()
    raft.step(RequestReceived(1, fetches()), 9.1, 0.0)
    done = raft.step(RequestReceived(2, wire.begin_request("cluster", 2, ME, 3, [])), 9.2, 0.0)
    told = next(
        wire.metadata_partition(wish.response) for wish in done if isinstance(wish, SendResponse) and wish.ticket == 1
    )
    assert told is not None
    assert told.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_leader_hears_of_too_few_for_too_long_and_gives_up() -> None:
    raft = leading()
    assert state_after(raft, Tick(), 11.9) is State.LEADER
    assert state_after(raft, Tick(), 12.0) is State.RESIGNED


@pytest.mark.parametrize(("position", "code"), [(0, 0), (-1, ErrorCode.POSITION_OUT_OF_RANGE)])
def test_a_piece_of_a_snapshot_is_there_from_its_beginning(position: int, code: int) -> None:
    request = wire.snapshot_request("cluster", OTHER, 1, SnapshotId(8, 1), position, 100)
    (wish,) = [
        each for each in leading().step(RequestReceived(1, request), 9.1, 0.0) if not isinstance(each, SendRequest)
    ]
    assert isinstance(wish, SendResponse if code else SendSnapshotChunk)
    partition = wire.metadata_partition(wish.response)
    assert partition is not None
    assert partition.error_code == code
