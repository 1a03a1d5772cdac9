"""InitProducerId: an id for an idempotent producer, or the one that belongs to a transactional id."""

from __future__ import annotations

import logging

from ottla.broker.access import Access
from ottla.broker.node import BrokerNode
from ottla.broker.requests.call import Call, Outcome
from ottla.broker.transaction_calls import MOVES, ask
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
    """Without a transactional id always a new id, as there is nothing to go on with after an error."""
    if (request.producer_id == -1) != (request.producer_epoch == -1):
        return refused(ErrorCode.INVALID_REQUEST)
    if node.access is not None and (error := denial_of(node.access, call, request)):
        return refused(error)
    if request.transactional_id is not None:
        return transactional(node, call, request.transactional_id, request)
    try:
        return InitProducerIdResponse(producer_id=node.producer_ids.next())
    except KafkaError as error:
        return unable(node, call, error)


def unable(node: BrokerNode, call: Call, error: KafkaError) -> InitProducerIdResponse:
    """What a client is told that makes it try again, where the fault is the broker's."""
    if error.code in MOVES:
        return refused(error.code)
    node.partitions.complaints.tell(f"no id for the producer of {call.connection.peer[0]}: {error}")
    is_told = isinstance(error, OutOfServiceError)
    return refused(error.code if is_told else ErrorCode.COORDINATOR_NOT_AVAILABLE)


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
    node: BrokerNode, call: Call, transactional_id: str, request: InitProducerIdRequest
) -> Message | Outcome:
    """The id and epoch with which a producer goes on."""
    if not transactional_id:
        return refused(ErrorCode.INVALID_REQUEST)
    if not 0 < request.transaction_timeout_ms <= node.config.transaction_max_timeout_ms:
        return refused(ErrorCode.INVALID_TRANSACTION_TIMEOUT)

    def response(answer: Answer | KafkaError) -> InitProducerIdResponse:
        return unable(node, call, answer) if isinstance(answer, KafkaError) else given(call, transactional_id, answer)

    about = (transactional_id, request.transaction_timeout_ms, request.producer_id, request.producer_epoch)
    return ask(call, lambda later: node.transactions.begin(*about, later=later), response)


def given(call: Call, transactional_id: str, answer: Answer) -> InitProducerIdResponse:
    if answer.code == ErrorCode.PRODUCER_FENCED and call.version < FENCED_SINCE:
        return refused(ErrorCode.INVALID_PRODUCER_EPOCH)
    if answer.code:
        return refused(answer.code)
    log.info("initialized transactional.id %r with id %d, epoch %d", transactional_id, answer.producer_id, answer.epoch)
    return InitProducerIdResponse(producer_id=answer.producer_id, producer_epoch=answer.epoch)


def refused(code: int) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=code, producer_epoch=-1)
