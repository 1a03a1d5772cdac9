"""InitProducerId: return a new producer id, or the id of a transactional id with the next epoch."""

from __future__ import annotations

import logging

from ottla.broker.apis.transaction_calls import MOVES, submit
from ottla.broker.network_server.call import Call, Outcome
from ottla.broker.node import BrokerNode
from ottla.broker.security.authorization import Access
from ottla.coordination.transactions.events import Answer
from ottla.errors import ErrorCode, KafkaError
from ottla.protocol.acl import CLUSTER_NAME, Operation, ResourceType
from ottla.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from ottla.protocol.schema import Message
from ottla.storage.batches.damage import OutOfServiceError

log = logging.getLogger(__name__)

FENCED_SINCE = 4
"""From this version on clients know PRODUCER_FENCED."""


def handle(node: BrokerNode, call: Call, request: InitProducerIdRequest) -> Message | Outcome:
    """Return an id and epoch. Without a transactional id the id is always a new one."""
    if (request.producer_id == -1) != (request.producer_epoch == -1):
        return build_error(ErrorCode.INVALID_REQUEST)
    if node.access is not None and (error := find_denial(node.access, call, request)):
        return build_error(error)
    if request.transactional_id is not None:
        return init_transactional(node, call, request.transactional_id, request)
    try:
        return InitProducerIdResponse(producer_id=node.producer_ids.next())
    except KafkaError as error:
        return build_unavailable(node, call, error)


def build_unavailable(node: BrokerNode, call: Call, error: KafkaError) -> InitProducerIdResponse:
    """Return a retriable error for a fault of the broker, and log the cause."""
    if error.code in MOVES:
        return build_error(error.code)
    node.partitions.complaints.log(
        f"cannot allocate a producer id for the client at {call.connection.peer[0]}: {error}"
    )
    has_code = isinstance(error, OutOfServiceError)
    return build_error(error.code if has_code else ErrorCode.COORDINATOR_NOT_AVAILABLE)


def find_denial(access: Access, call: Call, request: InitProducerIdRequest) -> int:
    """Return the error code for a client that may not have an id. Any client that may write may have one (KIP-679)."""
    if request.transactional_id is not None:
        name = request.transactional_id
        allowed = access.allows(call, Operation.WRITE, ResourceType.TRANSACTIONAL_ID, name)
        return ErrorCode.NONE if allowed else ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    if access.allows_any(call, Operation.WRITE, ResourceType.TOPIC) or access.allows(
        call, Operation.IDEMPOTENT_WRITE, ResourceType.CLUSTER, CLUSTER_NAME
    ):
        return ErrorCode.NONE
    return ErrorCode.CLUSTER_AUTHORIZATION_FAILED


def init_transactional(
    node: BrokerNode, call: Call, transactional_id: str, request: InitProducerIdRequest
) -> Message | Outcome:
    """Return the id and epoch of a transactional producer."""
    if not transactional_id:
        return build_error(ErrorCode.INVALID_REQUEST)
    if not 0 < request.transaction_timeout_ms <= node.config.transaction_max_timeout_ms:
        return build_error(ErrorCode.INVALID_TRANSACTION_TIMEOUT)

    def response(answer: Answer | KafkaError) -> InitProducerIdResponse:
        return (
            build_unavailable(node, call, answer)
            if isinstance(answer, KafkaError)
            else build_response(call, transactional_id, answer)
        )

    about = (transactional_id, request.transaction_timeout_ms, request.producer_id, request.producer_epoch)
    return submit(call, lambda later: node.transactions.init_producer_id(*about, later=later), response)


def build_response(call: Call, transactional_id: str, answer: Answer) -> InitProducerIdResponse:
    if answer.code == ErrorCode.PRODUCER_FENCED and call.version < FENCED_SINCE:
        return build_error(ErrorCode.INVALID_PRODUCER_EPOCH)
    if answer.code:
        return build_error(answer.code)
    log.info("initialized transactional.id %r with id %d, epoch %d", transactional_id, answer.producer_id, answer.epoch)
    return InitProducerIdResponse(producer_id=answer.producer_id, producer_epoch=answer.epoch)


def build_error(code: int) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=code, producer_epoch=-1)
