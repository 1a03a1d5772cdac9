"""InitProducerId: an id for an idempotent producer."""

from __future__ import annotations

import logging

from ottla.broker.call import Call
from ottla.broker.handlers.find_coordinator import NO_TRANSACTIONS
from ottla.broker.node import Node
from ottla.errors import ErrorCode, KafkaError
from ottla.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

log = logging.getLogger(__name__)


def handle(node: Node, call: Call, request: InitProducerIdRequest) -> InitProducerIdResponse:
    """A new id, epoch 0; also for a producer that asks to go on after an error, as there is nothing to go on with."""
    if request.transactional_id is not None:
        # The answer has no room for words, so they go to the log.
        log.warning("refused transactional.id %r of %s: %s", request.transactional_id, call.connection, NO_TRANSACTIONS)
        return InitProducerIdResponse(error_code=ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, producer_epoch=-1)
    if (request.producer_id < 0) != (request.producer_epoch < 0):
        return InitProducerIdResponse(error_code=ErrorCode.INVALID_REQUEST, producer_epoch=-1)
    try:
        return InitProducerIdResponse(producer_id=node.producer_ids.next())
    except KafkaError as error:
        log.error("no id for the producer of %s: %s", call.connection, error)
        return InitProducerIdResponse(error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE, producer_epoch=-1)
