"""Responses of other nodes: votes and fetches, snapshot chunks, errors, and outdated responses."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.coordination.quorum import wire
from ottla.coordination.quorum.events import Action, ResponseReceived, SendRequest, Tick, WriteSnapshotChunk
from ottla.coordination.quorum.log_shape import SnapshotId
from ottla.coordination.quorum.raft import Raft
from ottla.coordination.quorum.state import State
from ottla.errors import ErrorCode
from ottla.protocol.messages.fetch import FetchRequest
from ottla.protocol.messages.fetch_snapshot import FetchSnapshotRequest
from ottla.protocol.messages.vote import VoteResponse
from tests.coordination.quorum.test_raft import following, replica, response

SNAPSHOT = SnapshotId(40, 4)
TOLD = wire.ResponseBuilder(4, 2, [])


def piece(
    data: bytes = b"", size: int = 10, position: int = 0, code: int = 0, builder: wire.ResponseBuilder = TOLD
) -> Any:
    """An answer with some bytes of the snapshot."""
    answer: Any = builder.snapshot_response(code, SNAPSHOT, position)
    found = wire.metadata_partition(answer)
    assert found is not None
    found.size, found.unaligned_records = size, data
    return answer


def find_request(done: list[Action]) -> SendRequest:
    """The one question among what it wants."""
    (question,) = [wish for wish in done if isinstance(wish, SendRequest)]
    return question


def fetching() -> tuple[Raft, SendRequest]:
    """Return a replica that was redirected to a snapshot and has requested its first chunk."""
    raft, fetch = following()
    answer: Any = TOLD.fetch_response(0, 50, 40, snapshot=SNAPSHOT)
    question = find_request(raft.step(ResponseReceived(2, fetch.number, answer), 0.2, 0.0))
    assert isinstance(question.request, FetchSnapshotRequest)
    return raft, question


def kept(done: list[Action]) -> list[WriteSnapshotChunk]:
    return [wish for wish in done if isinstance(wish, WriteSnapshotChunk)]


def requested_position(question: SendRequest) -> int:
    """The position in the snapshot that it would have; -1 for the log instead."""
    if isinstance(question.request, FetchRequest):
        return -1
    assert isinstance(question.request, FetchSnapshotRequest)
    return int(question.request.topics[0].partitions[0].position)


def test_a_snapshot_is_fetched_in_chunks_with_no_request_while_the_last_is_written() -> None:
    raft, question = fetching()
    assert requested_position(question) == 0
    done = raft.step(ResponseReceived(2, question.number, piece(b"1234567")), 0.3, 0.0)
    assert kept(done) == [WriteSnapshotChunk(SNAPSHOT, 0, b"1234567", False)]
    question = find_request(done)
    assert requested_position(question) == 7
    done = raft.step(ResponseReceived(2, question.number, piece(b"890", position=7)), 0.4, 0.0)
    assert kept(done) == [WriteSnapshotChunk(SNAPSHOT, 7, b"890", True)]
    assert not [wish for wish in done if isinstance(wish, SendRequest)]
    assert (raft._snapshot_fetch, raft._is_writing) == (None, True)


@pytest.mark.parametrize(
    "answer",
    [
        piece(b"123", position=1),
        piece(b"", size=10),
        piece(code=ErrorCode.SNAPSHOT_NOT_FOUND),
        piece(code=ErrorCode.POSITION_OUT_OF_RANGE),
    ],
    ids=["another position", "nothing", "not there", "out of range"],
)
def test_a_stalled_snapshot_is_abandoned_and_the_log_is_fetched_again(answer: Any) -> None:
    raft, question = fetching()
    done = raft.step(ResponseReceived(2, question.number, answer), 0.3, 0.0)
    assert kept(done) == []
    assert (raft._snapshot_fetch, raft._is_writing) == (None, False)
    assert requested_position(find_request(done)) == -1


def test_an_empty_snapshot_is_complete_at_once() -> None:
    raft, question = fetching()
    done = raft.step(ResponseReceived(2, question.number, piece(b"", size=0)), 0.3, 0.0)
    assert kept(done) == [WriteSnapshotChunk(SNAPSHOT, 0, b"", True)]


def test_a_leadership_error_postpones_the_snapshot() -> None:
    raft, question = fetching()
    done = raft.step(ResponseReceived(2, question.number, piece(code=ErrorCode.NOT_LEADER_OR_FOLLOWER)), 0.3, 0.0)
    assert kept(done) == []
    assert raft._snapshot_fetch is not None


def test_a_response_of_an_old_epoch_is_ignored() -> None:
    raft, question = fetching()
    old = piece(b"123", builder=wire.ResponseBuilder(3, 2, []))
    done = raft.step(ResponseReceived(2, question.number, old), 0.3, 0.0)
    assert (kept(done), raft.epoch) == ([], 4)


def test_only_the_leader_is_read_from_a_response_of_a_later_epoch() -> None:
    raft, question = fetching()
    done = raft.step(
        ResponseReceived(2, question.number, piece(b"123", builder=wire.ResponseBuilder(5, 3, []))), 0.3, 0.0
    )
    assert (kept(done), raft.epoch, raft.leader_id, raft._snapshot_fetch) == ([], 5, 3, None)


def test_a_snapshot_that_ends_at_0_is_one() -> None:
    raft, fetch = following()
    answer: Any = TOLD.fetch_response(0, 50, 40, snapshot=SnapshotId(0, 0))
    raft.step(ResponseReceived(2, fetch.number, answer), 0.2, 0.0)
    assert raft._snapshot_fetch is not None
    raft, fetch = following()
    answer = TOLD.fetch_response(0, 50, 40, snapshot=SnapshotId(-1, -1))
    raft.step(ResponseReceived(2, fetch.number, answer), 0.2, 0.0)
    assert raft._snapshot_fetch is None


def test_a_fetch_rejected_by_the_leader_is_retried_at_another_node_first() -> None:
    raft, fetch = following()
    refusal = response(error_code=ErrorCode.UNKNOWN_SERVER_ERROR)
    done = raft.step(ResponseReceived(2, fetch.number, refusal), 0.2, 0.0)
    assert [wish.to for wish in done if isinstance(wish, SendRequest)] == [3]


def prospective() -> tuple[Raft, list[SendRequest]]:
    """Return a replica with a silent leader that has sent pre-vote requests."""
    raft = replica()
    done = raft.step(Tick(), 9.0, 0.0)
    assert raft.state is State.PROSPECTIVE
    return raft, [wish for wish in done if isinstance(wish, SendRequest)]


def test_without_pre_vote_support_a_replica_becomes_a_candidate_at_once() -> None:
    raft, (question, _) = prospective()
    raft.step(ResponseReceived(question.to, question.number, VoteResponse(ErrorCode.UNSUPPORTED_VERSION)), 9.1, 0.0)
    assert raft.state is State.CANDIDATE


def test_another_error_is_not_a_rejected_vote() -> None:
    raft, (question, _) = prospective()
    raft.step(ResponseReceived(question.to, question.number, VoteResponse(ErrorCode.UNKNOWN_SERVER_ERROR)), 9.1, 0.0)
    assert raft.state is State.PROSPECTIVE


def test_a_vote_counts_only_for_its_candidate() -> None:
    raft, questions = prospective()
    granted: Any = wire.ResponseBuilder(3, None, []).vote_response(0, granted=True)
    raft.step(ResponseReceived(questions[0].to, questions[0].number, granted), 9.1, 0.0)
    assert (raft.state, raft.epoch) == (State.CANDIDATE, 4)
    raft.step(ResponseReceived(questions[1].to, questions[1].number, granted), 9.2, 0.0)
    assert raft.state is State.CANDIDATE, "what was said of epoch 3 elects nobody in epoch 4"
