"""InitProducerId: an id for an idempotent producer, or the one that belongs to a transactional id."""

from __future__ import annotations

import logging

from ottla.broker.access import Access
from ottla.broker.node import BrokerNode
from ottla.broker.requests.call import Call
from ottla.errors import ErrorCode, KafkaError
from ottla.protocol.acl import CLUSTER_NAME, Operation, ResourceType
from ottla.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from ottla.storage.batches.damage import OutOfServiceError

log = logging.getLogger(__name__)

FENCED_SINCE = 4
"""From this version on clients know PRODUCER_FENCED."""


def handle(node: BrokerNode, call: Call, request: InitProducerIdRequest) -> InitProducerIdResponse:
    """Without a transactional id always a new id, as there is nothing to go on with after an error."""
    if (request.producer_id < 0) != (request.producer_epoch < 0):
        return refused(ErrorCode.INVALID_REQUEST)
    if node.access is not None and (error := denial_of(node.access, call, request)):
        return refused(error)
    try:
        if request.transactional_id is None:
            return InitProducerIdResponse(producer_id=node.producer_ids.next())
        return transactional(node, call.version, request.transactional_id, request)
    except KafkaError as error:
        node.partitions.complaints.tell(f"no id for the producer of {call.connection.peer[0]}: {error}")
        is_passed_on = error.code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS or isinstance(error, OutOfServiceError)
        return refused(error.code if is_passed_on else ErrorCode.COORDINATOR_NOT_AVAILABLE)


def denial_of(access: Access, call: Call, request: InitProducerIdRequest) -> int:
    """Why a client may have no id. Who may write somewhere may do so with an id (KIP-679)."""
    if request.transactional_id is not None:
        name = request.transactional_id
        allowed = access.allows(call, Operation.WRITE, ResourceType.TRANSACTIONAL_ID, name)
        return ErrorCode.NONE if allowed else ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    if access.allows_any(call, Operation.WRITE, ResourceType.TOPIC) or access.allows(
        call, Operation.IDEMPOTENT_WRITE, ResourceType.CLUSTER, CLUSTER_NAME
    ):
        return ErrorCode.NONE
    return ErrorCode.CLUSTER_AUTHORIZATION_FAILED


def transactional(
    node: BrokerNode, version: int, transactional_id: str, request: InitProducerIdRequest
) -> InitProducerIdResponse:
    """The id and epoch with which a producer goes on."""
    if not transactional_id:
        return refused(ErrorCode.INVALID_REQUEST)
    if node.brokers is not None:
        return refused(ErrorCode.NOT_COORDINATOR)
    if not 0 < request.transaction_timeout_ms <= node.config.transaction_max_timeout_ms:
        return refused(ErrorCode.INVALID_TRANSACTION_TIMEOUT)
    answer = node.transactions.begin(
        transactional_id, request.transaction_timeout_ms, request.producer_id, request.producer_epoch
    )
    if answer.code == ErrorCode.PRODUCER_FENCED and version < FENCED_SINCE:
        return refused(ErrorCode.INVALID_PRODUCER_EPOCH)
    if answer.code:
        return refused(answer.code)
    log.info("initialized transactional.id %r with id %d, epoch %d", transactional_id, answer.producer_id, answer.epoch)
    return InitProducerIdResponse(producer_id=answer.producer_id, producer_epoch=answer.epoch)


def refused(code: int) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=code, producer_epoch=-1)
