"""AddRaftVoter and RemoveRaftVoter of a broker that is a cluster of its own: always refused, with the reason."""

from __future__ import annotations

from uuid import UUID

import pytest

from ottla.errors import ErrorCode
from ottla.protocol.messages.add_raft_voter import AddRaftVoterRequest
from ottla.protocol.messages.remove_raft_voter import RemoveRaftVoterRequest
from ottla.protocol.schema import ZERO_UUID
from tests.broker.wire import Wire


def test_no_voter_can_join_a_broker_that_is_its_own_controller(wire: Wire) -> None:
    response = wire.ask(AddRaftVoterRequest(None, 1000, 7))
    assert response.error_code == ErrorCode.INVALID_REQUEST
    assert "controller 7 cannot vote here: broker 1 is a cluster of its own" in response.error_message


def test_a_broker_that_is_its_own_controller_votes_with_any_directory(wire: Wire) -> None:
    response = wire.ask(AddRaftVoterRequest(None, 1000, 1, UUID(int=5)))
    assert response.error_code == ErrorCode.DUPLICATE_VOTER
    assert "controller 1 votes here already" in response.error_message


@pytest.mark.parametrize(
    ("voter", "directory", "code", "reason"),
    [
        (1, ZERO_UUID, ErrorCode.INVALID_REQUEST, "the only one that votes"),
        (1, UUID(int=5), ErrorCode.VOTER_NOT_FOUND, "which is not the directory of broker 1"),
        (7, ZERO_UUID, ErrorCode.VOTER_NOT_FOUND, "controller 7 does not vote"),
    ],
)
def test_a_broker_that_is_its_own_controller_cannot_be_removed_from_the_voters(
    wire: Wire, voter: int, directory: UUID, code: int, reason: str
) -> None:
    response = wire.ask(RemoveRaftVoterRequest(None, voter, directory))
    assert response.error_code == code
    assert reason in response.error_message
