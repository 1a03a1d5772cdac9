"""AlterShareGroupOffsets: set the offsets from which a share group without members reads (KIP-932)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ottla.broker.apis.deferred_response import DeferredResponse
from ottla.broker.apis.group_calls import find_code
from ottla.broker.apis.share_state_calls import group_fault
from ottla.broker.network_server.call import Call, Outcome
from ottla.broker.node import BrokerNode
from ottla.broker.security.authorization import lacks_permission
from ottla.broker.state_machines.runtime import PendingReply
from ottla.coordination.groups.consumer.member import TopicIdPartition
from ottla.coordination.groups.share.events import OffsetChanges, ShareOffsetsAlterRequested
from ottla.errors import ErrorCode, KafkaError
from ottla.protocol.acl import Operation, ResourceType
from ottla.protocol.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsResponse,
    AlterShareGroupOffsetsResponsePartition,
    AlterShareGroupOffsetsResponseTopic,
)
from ottla.protocol.schema import ZERO_UUID, Message

if TYPE_CHECKING:
    from ottla.broker.coordinators.share_coordinator import StateResult


def handle(node: BrokerNode, call: Call, request: AlterShareGroupOffsetsRequest) -> Message | Outcome:
    """Reset the states of partitions, and respond when that is persisted."""
    group_id = request.group_id
    fault = group_fault(node, call, group_id, Operation.READ)
    if fault is not None:
        return refused(*fault)
    offsets, codes = split_offsets(node, call, request)

    response = DeferredResponse(call)

    def initialize(reply: Any) -> None:
        if not isinstance(reply, OffsetChanges):
            code = find_code(node, group_id, reply) if isinstance(reply, KafkaError) else reply
            response.send(refused(code, explain(code, group_id)))
            return
        codes.update(reply.errors)
        node.groups.share_states.initialize(reply.initialization, respond)

    def respond(results: Mapping[TopicIdPartition, StateResult]) -> None:
        for name, index in offsets:
            topic = node.topics.find_by_name(name)
            if topic is not None and (topic.topic_id, index) in results:
                codes[name, index] = results[topic.topic_id, index].error
        response.send(build_response(node, codes))

    try:
        reply = node.groups.submit(
            group_id,
            lambda ticket: ShareOffsetsAlterRequested(ticket, group_id, offsets, node.clock.wall_ms()),
            initialize,
            make=False,
        )
    except KafkaError as error:
        return refused(find_code(node, group_id, error), error.message)
    if not isinstance(reply, PendingReply):
        initialize(reply)
    return response.result()


def split_offsets(
    node: BrokerNode, call: Call, request: AlterShareGroupOffsetsRequest
) -> tuple[dict[tuple[str, int], int], dict[tuple[str, int], int]]:
    """Return the offsets that the client may set, and the error codes of the others."""
    offsets: dict[tuple[str, int], int] = {}
    codes: dict[tuple[str, int], int] = {}
    for topic in request.topics:
        is_denied = lacks_permission(node, call, Operation.READ, ResourceType.TOPIC, topic.topic_name)
        for each in topic.partitions:
            if is_denied:
                codes[topic.topic_name, each.partition_index] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            else:
                offsets[topic.topic_name, each.partition_index] = each.start_offset
    return offsets, codes


def build_response(node: BrokerNode, codes: Mapping[tuple[str, int], int]) -> AlterShareGroupOffsetsResponse:
    topics: dict[str, list[AlterShareGroupOffsetsResponsePartition]] = {}
    for (name, index), code in sorted(codes.items()):
        topics.setdefault(name, []).append(AlterShareGroupOffsetsResponsePartition(index, code))
    return AlterShareGroupOffsetsResponse(
        responses=[
            AlterShareGroupOffsetsResponseTopic(
                name, ZERO_UUID if (topic := node.topics.find_by_name(name)) is None else topic.topic_id, found
            )
            for name, found in topics.items()
        ]
    )


def explain(code: int, group_id: str) -> str | None:
    """Return the message of an error that concerns the group."""
    if code == ErrorCode.NON_EMPTY_GROUP:
        return f"share group {group_id} has members: stop them first"
    return f"there is no share group {group_id}" if code == ErrorCode.GROUP_ID_NOT_FOUND else None


def refused(code: int, text: str | None) -> AlterShareGroupOffsetsResponse:
    return AlterShareGroupOffsetsResponse(error_code=code, error_message=text)
