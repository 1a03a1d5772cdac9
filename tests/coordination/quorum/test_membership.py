"""Voters change one at a time, and only after the previous change and a record of the leader's epoch are committed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from ottla.coordination.quorum.events import (
    Action,
    AppendControlRecords,
    LogChanged,
    RequestFailed,
    RequestReceived,
    ResponseReceived,
    SendRequest,
    SendResponse,
    Tick,
)
from ottla.coordination.quorum.log_shape import LogShape
from ottla.coordination.quorum.raft import Raft
from ottla.coordination.quorum.voters import ReplicaKey
from ottla.errors import ErrorCode
from ottla.protocol.messages.add_raft_voter import AddRaftVoterRequest, Listener
from ottla.protocol.messages.api_versions import ApiVersionsResponse, SupportedFeatureKey
from ottla.protocol.messages.remove_raft_voter import RemoveRaftVoterRequest
from ottla.protocol.messages.update_raft_voter import UpdateRaftVoterRequest
from tests.coordination.quorum.test_raft import FIRST, ME, OTHER, THIRD, VOTERS, fetches, leading

FOURTH = ReplicaKey(4, UUID(int=4))
WITHOUT_THIRD = FIRST._replace(end=2, durable=2, voters=VOTERS.without(3), voters_end=2)
"""The record of its removal is written but not replicated."""


def remove(key: ReplicaKey = THIRD, cluster_id: str | None = None) -> RemoveRaftVoterRequest:
    return RemoveRaftVoterRequest(cluster_id, *key)


def add(key: ReplicaKey = FOURTH, *, ack_when_committed: bool = True) -> AddRaftVoterRequest:
    return AddRaftVoterRequest(None, 1000, *key, [Listener("CONTROLLER", "d", 9093)], ack_when_committed)


def committing(log: LogShape = FIRST) -> Raft:
    """A leader that has committed what it wrote first."""
    raft = leading()
    raft.step(RequestReceived(1, fetches()), 9.1, 0.0)
    raft.step(LogChanged(log), 9.1, 0.0)
    return raft


def change_responses(done: list[Action]) -> list[tuple[int, int]]:
    """The tickets and error codes of responses to changes."""
    answers: list[Any] = [wish for wish in done if isinstance(wish, SendResponse)]
    return [(each.ticket, each.response.error_code) for each in answers if not hasattr(each.response, "responses")]


def written(done: list[Action]) -> list[set[int]]:
    """The voters of each record that the leader appends."""
    records: list[Any] = [record for wish in done if isinstance(wish, AppendControlRecords) for record in wish.records]
    return [{each.voter_id for each in record.voters} for record in records]


def handle_request(raft: Raft, request: Any, now: float = 9.2) -> list[Action]:
    done = raft.step(RequestReceived(7, request), now, 0.0)
    raft.check()
    return done


def test_a_removal_of_a_voter_is_answered_once_committed() -> None:
    raft = committing()
    done = handle_request(raft, remove())
    assert (written(done), change_responses(done)) == ([{1, 2}], [])
    assert change_responses(raft.step(LogChanged(WITHOUT_THIRD), 9.3, 0.0)) == []
    assert change_responses(raft.step(RequestReceived(8, fetches(WITHOUT_THIRD)), 9.4, 0.0)) == [(7, 0)]


def test_a_change_waits_for_the_commit_of_the_previous_one_even_if_unobserved() -> None:
    raft = committing()
    handle_request(raft, remove())
    raft.step(LogChanged(WITHOUT_THIRD), 9.3, 0.0)
    assert change_responses(handle_request(raft, remove(OTHER))) == [(7, ErrorCode.REQUEST_TIMED_OUT)]
    assert change_responses(raft.step(Tick(), 11.19, 0.0)) == []
    assert change_responses(raft.step(Tick(), 11.2, 0.0)) == [(7, ErrorCode.REQUEST_TIMED_OUT)]
    done = handle_request(raft, remove(OTHER), 11.3)
    assert (written(done), change_responses(done)) == ([], [(7, ErrorCode.REQUEST_TIMED_OUT)])


def test_a_leader_without_a_commit_in_its_epoch_rejects_changes() -> None:
    done = handle_request(leading(), remove())
    assert (written(done), change_responses(done)) == ([], [(7, ErrorCode.REQUEST_TIMED_OUT)])


def test_a_leader_may_remove_itself_and_then_does_not_count() -> None:
    raft = committing()
    assert written(handle_request(raft, remove(ME))) == [{2, 3}]
    gone = FIRST._replace(end=2, durable=2, voters=VOTERS.without(1), voters_end=2)
    raft.step(LogChanged(gone), 9.3, 0.0)
    raft.step(RequestReceived(8, fetches(gone)), 9.4, 0.0)
    assert raft.high_watermark == 1
    done = raft.step(RequestReceived(9, fetches(gone, who=THIRD)), 9.5, 0.0)
    assert change_responses(done)[0] == (7, 0)
    assert raft.leadership is None


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (remove(cluster_id="another"), ErrorCode.INCONSISTENT_CLUSTER_ID),
        (remove(ReplicaKey(3)), ErrorCode.INVALID_REQUEST),
        (remove(ReplicaKey(-1, UUID(int=3))), ErrorCode.INVALID_REQUEST),
        (remove(FOURTH), ErrorCode.VOTER_NOT_FOUND),
        (remove(ReplicaKey(3, UUID(int=9))), ErrorCode.VOTER_NOT_FOUND),
        (add(THIRD), ErrorCode.DUPLICATE_VOTER),
        (UpdateRaftVoterRequest(None, 1, *FOURTH), ErrorCode.VOTER_NOT_FOUND),
    ],
)
def test_impossible_changes_are_rejected_with_kafkas_errors(request_: Any, code: ErrorCode) -> None:
    done = handle_request(committing(), request_)
    assert (written(done), change_responses(done)) == ([], [(7, code)])


def test_static_voters_and_the_last_voter_cannot_be_removed() -> None:
    assert change_responses(handle_request(committing(FIRST._replace(kraft_version=0)), remove())) == [
        (7, ErrorCode.UNSUPPORTED_VERSION)
    ]
    raft = committing()
    alone = FIRST._replace(voters=VOTERS.without(2).without(3))
    raft.step(LogChanged(alone), 9.15, 0.0)
    assert change_responses(handle_request(raft, remove(ME))) == [(7, ErrorCode.VOTER_NOT_FOUND)]


# the joining node


def request_addition(raft: Raft, request: AddRaftVoterRequest) -> int:
    """Return the number of the request to the joining node."""
    done = handle_request(raft, request)
    (number,) = [wish.number for wish in done if isinstance(wish, SendRequest) and wish.to == 4]
    assert (written(done), change_responses(done)) == ([], [])
    return number


def able(first: int = 0, last: int = 1) -> ApiVersionsResponse:
    return ApiVersionsResponse(supported_features=[SupportedFeatureKey("kraft.version", first, last)])


def copying(log: LogShape = FIRST) -> Raft:
    """Return a leader with a log that node 4 has copied."""
    raft = committing()
    raft.step(RequestReceived(2, fetches(log, who=FOURTH)), 9.15, 0.0)
    return raft


def test_a_caught_up_node_with_the_same_features_becomes_a_voter() -> None:
    raft = copying()
    number = request_addition(raft, add())
    assert change_responses(handle_request(raft, remove())) == [(7, ErrorCode.REQUEST_TIMED_OUT)], (
        "one change at a time"
    )
    assert written(raft.step(ResponseReceived(4, number, able()), 9.3, 0.0)) == [{1, 2, 3, 4}]


@pytest.mark.parametrize("response", [able(0, 0), able(2, 3), ApiVersionsResponse()])
def test_a_node_with_other_features_does_not_become_a_voter(response: ApiVersionsResponse) -> None:
    raft = copying()
    done = raft.step(ResponseReceived(4, request_addition(raft, add()), response), 9.3, 0.0)
    assert (written(done), change_responses(done)) == ([], [(7, ErrorCode.INVALID_REQUEST)])


@pytest.mark.parametrize("made", [committing, lambda: copying(LogShape(0, 0, ()))], ids=["never", "not all"])
def test_a_node_behind_the_log_does_not_become_a_voter(made: Callable[[], Raft]) -> None:
    raft = made()
    done = raft.step(ResponseReceived(4, request_addition(raft, add()), able()), 9.3, 0.0)
    assert (written(done), change_responses(done)) == ([], [(7, ErrorCode.REQUEST_TIMED_OUT)])


@pytest.mark.parametrize("answer", ["lost", "refused", "late"])
def test_a_node_without_known_features_does_not_become_a_voter(answer: str) -> None:
    raft = copying()
    number = request_addition(raft, add())
    events: dict[str, tuple[Any, float]] = {
        "lost": (RequestFailed(4, number), 9.3),
        "refused": (ResponseReceived(4, number, ApiVersionsResponse(ErrorCode.UNSUPPORTED_VERSION)), 9.3),
        "late": (Tick(), 10.2),
    }
    event, now = events[answer]
    done = raft.step(event, now, 0.0)
    assert (written(done), change_responses(done)) == ([], [(7, ErrorCode.REQUEST_TIMED_OUT)])
    assert raft._voter_change is None


@pytest.mark.parametrize("waits", [True, False])
def test_an_add_voter_request_waits_for_the_commit_only_if_requested(waits: bool) -> None:
    raft = copying()
    raft.step(ResponseReceived(4, request_addition(raft, add(ack_when_committed=waits)), able()), 9.3, 0.0)
    four = FIRST._replace(end=2, durable=2, voters=VOTERS, voters_end=2)
    assert change_responses(raft.step(LogChanged(four), 9.4, 0.0)) == ([] if waits else [(7, 0)])
