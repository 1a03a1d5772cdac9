"""RemoveRaftVoter: a broker that is its own controller is the only voter, and stays it."""

from __future__ import annotations

from ottla.broker.node import BrokerNode
from ottla.broker.requests.call import Call
from ottla.errors import ErrorCode
from ottla.kafka_id import id_of, text_of
from ottla.protocol.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse
from ottla.protocol.schema import ZERO_UUID


def handle(node: BrokerNode, call: Call, request: RemoveRaftVoterRequest) -> RemoveRaftVoterResponse:
    """Always refused, with the reason."""
    wanted = request.voter_id
    if wanted != node.config.node_id:
        return RemoveRaftVoterResponse(
            error_code=ErrorCode.VOTER_NOT_FOUND, error_message=f"controller {wanted} does not vote here"
        )
    own = id_of(node.directory.meta.directory_id)
    if request.voter_directory_id not in (ZERO_UUID, own):
        told = f"{text_of(request.voter_directory_id)}, which is not the directory of broker {wanted}: {text_of(own)}"
        return RemoveRaftVoterResponse(
            error_code=ErrorCode.VOTER_NOT_FOUND, error_message=f"controller {wanted} does not vote with {told}"
        )
    return RemoveRaftVoterResponse(
        error_code=ErrorCode.INVALID_REQUEST,
        error_message=f"broker {wanted} is a cluster of its own, and the only one that votes: stop it instead",
    )
