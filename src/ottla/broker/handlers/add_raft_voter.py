"""AddRaftVoter: a broker that is its own controller votes alone."""

from __future__ import annotations

from ottla.broker.node import BrokerNode
from ottla.broker.requests.call import Call
from ottla.errors import ErrorCode
from ottla.protocol.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse


def handle(node: BrokerNode, call: Call, request: AddRaftVoterRequest) -> AddRaftVoterResponse:
    """Always refused, with the way to a quorum of several."""
    if request.voter_id == node.config.node_id:
        return AddRaftVoterResponse(
            error_code=ErrorCode.DUPLICATE_VOTER, error_message=f"controller {request.voter_id} votes here already"
        )
    return AddRaftVoterResponse(
        error_code=ErrorCode.INVALID_REQUEST,
        error_message=f"controller {request.voter_id} cannot vote here: broker {node.config.node_id} is a cluster of its own. For a "
        "quorum start controllers with process.roles=controller, and let brokers join them",
    )
