"""The rejection of requests about the nodes of a cluster on a broker that is the only node."""

from __future__ import annotations

from typing import Any

from ottla.broker.node import BrokerNode
from ottla.errors import ErrorCode
from ottla.kafka_id import id_of, text_of
from ottla.protocol.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse
from ottla.protocol.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse
from ottla.protocol.messages.unregister_broker import UnregisterBrokerResponse
from ottla.protocol.schema import ZERO_UUID, Message


def reject_request(node: BrokerNode, request: Any) -> Message:
    """Return the refusal, with the reason and what to do instead."""
    match request:
        case AddRaftVoterRequest():
            return refuse_new_voter(node.config.node_id, request.voter_id)
        case RemoveRaftVoterRequest():
            return reject_voter_removal(node, request)
    return refuse_unregistration(node.config.node_id, request.broker_id)


def refuse_new_voter(node_id: int, voter_id: int) -> AddRaftVoterResponse:
    if voter_id == node_id:
        return AddRaftVoterResponse(
            error_code=ErrorCode.DUPLICATE_VOTER, error_message=f"controller {voter_id} votes here already"
        )
    return AddRaftVoterResponse(
        error_code=ErrorCode.INVALID_REQUEST,
        error_message=f"controller {voter_id} cannot vote here: broker {node_id} is a cluster of its own. For a "
        "quorum start controllers with process.roles=controller, and let brokers join them",
    )


def reject_voter_removal(node: BrokerNode, request: RemoveRaftVoterRequest) -> RemoveRaftVoterResponse:
    wanted = request.voter_id
    if wanted != node.config.node_id:
        return RemoveRaftVoterResponse(
            error_code=ErrorCode.VOTER_NOT_FOUND, error_message=f"controller {wanted} does not vote here"
        )
    own = id_of(node.directory.meta.directory_id)
    if request.voter_directory_id not in (ZERO_UUID, own):
        named = f"{text_of(request.voter_directory_id)}, which is not the directory of broker {wanted}: {text_of(own)}"
        return RemoveRaftVoterResponse(
            error_code=ErrorCode.VOTER_NOT_FOUND, error_message=f"controller {wanted} does not vote with {named}"
        )
    return RemoveRaftVoterResponse(
        error_code=ErrorCode.INVALID_REQUEST,
        error_message=f"broker {wanted} is a cluster of its own, and the only one that votes: stop it instead",
    )


def refuse_unregistration(node_id: int, broker_id: int) -> UnregisterBrokerResponse:
    if broker_id != node_id:
        code, message = ErrorCode.BROKER_ID_NOT_REGISTERED, f"no broker {broker_id} is registered"
    else:
        code = ErrorCode.INVALID_REQUEST
        message = f"Broker ID {broker_id} answers this request and is the only one: stop it instead."
    return UnregisterBrokerResponse(error_code=code, error_message=message)
