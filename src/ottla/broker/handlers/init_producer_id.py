"""InitProducerId: an id for an idempotent producer, or the one that belongs to a transactional id."""

from __future__ import annotations

import logging

from ottla.broker.node import BrokerNode
from ottla.broker.requests.call import Call
from ottla.errors import ErrorCode, KafkaError
from ottla.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from ottla.storage.damage import OutOfServiceError

log = logging.getLogger(__name__)

FENCED_SINCE = 4
"""From this version on clients know PRODUCER_FENCED."""


def handle(node: BrokerNode, call: Call, request: InitProducerIdRequest) -> InitProducerIdResponse:
    """Without a transactional id always a new id, as there is nothing to go on with after an error."""
    if (request.producer_id < 0) != (request.producer_epoch < 0):
        return refused(ErrorCode.INVALID_REQUEST)
    try:
        if request.transactional_id is None:
            return InitProducerIdResponse(producer_id=node.producer_ids.next())
        return transactional(node, call.version, request.transactional_id, request)
    except KafkaError as error:
        node.partitions.complaints.tell(f"no id for the producer of {call.connection.peer[0]}: {error}")
        is_passed_on = error.code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS or isinstance(error, OutOfServiceError)
        return refused(error.code if is_passed_on else ErrorCode.COORDINATOR_NOT_AVAILABLE)


def transactional(
    node: BrokerNode, version: int, transactional_id: str, request: InitProducerIdRequest
) -> InitProducerIdResponse:
    """The id and epoch with which a producer goes on."""
    if not transactional_id:
        return refused(ErrorCode.INVALID_REQUEST)
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
