"""DeleteShareGroupOffsets: delete the offsets of a share group without members, for whole topics (KIP-932)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from uuid import UUID

from ottla.broker.apis.alter_share_group_offsets import explain
from ottla.broker.apis.deferred_response import DeferredResponse
from ottla.broker.apis.group_calls import find_code
from ottla.broker.apis.share_state_calls import group_fault
from ottla.broker.network_server.call import Call, Outcome
from ottla.broker.node import BrokerNode
from ottla.broker.security.authorization import lacks_permission
from ottla.broker.state_machines.runtime import PendingReply
from ottla.coordination.groups.consumer.member import TopicIdPartition
from ottla.coordination.groups.share.events import OffsetDeletions, ShareOffsetsDeleteRequested
from ottla.errors import ErrorCode, KafkaError
from ottla.protocol.acl import Operation, ResourceType
from ottla.protocol.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
    DeleteShareGroupOffsetsResponseTopic,
)
from ottla.protocol.schema import ZERO_UUID, Message

if TYPE_CHECKING:
    from ottla.broker.coordinators.share_coordinator import StateResult


def handle(node: BrokerNode, call: Call, request: DeleteShareGroupOffsetsRequest) -> Message | Outcome:
    """Delete the states of topics, and respond when that is persisted."""
    group_id = request.group_id
    fault = group_fault(node, call, group_id, Operation.DELETE)
    if fault is not None:
        return refused(*fault)
    names = list(dict.fromkeys(topic.topic_name for topic in request.topics))
    codes: dict[str, int] = {
        name: ErrorCode.TOPIC_AUTHORIZATION_FAILED
        for name in names
        if lacks_permission(node, call, Operation.READ, ResourceType.TOPIC, name)
    }
    allowed = [name for name in names if name not in codes]
    ids: dict[str, UUID] = {}

    response = DeferredResponse(call)

    def delete(reply: Any) -> None:
        if not isinstance(reply, OffsetDeletions):
            code = find_code(node, group_id, reply) if isinstance(reply, KafkaError) else reply
            response.send(refused(code, explain(code, group_id)))
            return
        codes.update(reply.errors)
        node.groups.share_states.delete(group_id, reply.partitions, respond)

    def respond(results: Mapping[TopicIdPartition, StateResult]) -> None:
        for name in allowed:
            topic = node.topics.find_by_name(name)
            ids[name] = ZERO_UUID if topic is None else topic.topic_id
            found = [result.error for (topic_id, _), result in results.items() if topic_id == ids[name]]
            codes.setdefault(name, next(filter(None, found), ErrorCode.NONE))
        topics = [DeleteShareGroupOffsetsResponseTopic(name, ids.get(name, ZERO_UUID), codes[name]) for name in names]
        response.send(DeleteShareGroupOffsetsResponse(responses=topics))

    try:
        reply = node.groups.submit(
            group_id, lambda ticket: ShareOffsetsDeleteRequested(ticket, group_id, allowed), delete, make=False
        )
    except KafkaError as error:
        return refused(find_code(node, group_id, error), error.message)
    if not isinstance(reply, PendingReply):
        delete(reply)
    return response.result()


def refused(code: int, text: str | None) -> DeleteShareGroupOffsetsResponse:
    return DeleteShareGroupOffsetsResponse(error_code=code, error_message=text)
