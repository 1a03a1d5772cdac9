"""OffsetDelete: delete a group's committed offsets of topics that it is not subscribed to (KIP-496)."""

from __future__ import annotations

from collections.abc import Iterator

from ottla.broker.apis.group_calls import find_code, respond_when_committed
from ottla.broker.network_server.call import Call, Outcome
from ottla.broker.node import BrokerNode
from ottla.broker.security.authorization import lacks_permission
from ottla.coordination.groups.events import OffsetDeletionRequested
from ottla.errors import ErrorCode, KafkaError
from ottla.model import TopicPartition
from ottla.protocol.acl import Operation, ResourceType
from ottla.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from ottla.protocol.schema import Message


def handle(node: BrokerNode, call: Call, request: OffsetDeleteRequest) -> Message | Outcome:
    """Return a code for each partition, or one for the group."""
    return respond_when_committed(
        node, call, (request.group_id,), lambda: delete_offsets(node, call, request), OffsetDeleteResponse
    )


def delete_offsets(node: BrokerNode, call: Call, request: OffsetDeleteRequest) -> OffsetDeleteResponse:
    """Delete offsets and return the result of each."""
    if not request.group_id:
        return OffsetDeleteResponse(ErrorCode.INVALID_GROUP_ID)
    refused = {
        topic.name
        for topic in request.topics
        if lacks_permission(node, call, Operation.READ, ResourceType.TOPIC, topic.name)
    }
    wanted = [
        each for each in list_partitions(request) if each.topic not in refused and node.topics.has_partition(*each)
    ]
    try:
        reply = node.groups.submit(
            request.group_id, lambda ticket: OffsetDeletionRequested(ticket, request.group_id, wanted), make=False
        )
    except KafkaError as error:
        return OffsetDeleteResponse(find_code(node, request.group_id, error))
    if isinstance(reply, int):
        return OffsetDeleteResponse(reply)
    codes: dict[TopicPartition, int] = dict(zip(wanted, reply, strict=True))
    codes |= {each: ErrorCode.TOPIC_AUTHORIZATION_FAILED for each in list_partitions(request) if each.topic in refused}
    return OffsetDeleteResponse(topics=build_results(request, codes))


def list_partitions(request: OffsetDeleteRequest) -> Iterator[TopicPartition]:
    """Yield the partitions of the request."""
    for topic in request.topics:
        for partition in topic.partitions:
            yield TopicPartition(topic.name, partition.partition_index)


def build_results(request: OffsetDeleteRequest, codes: dict[TopicPartition, int]) -> list[OffsetDeleteResponseTopic]:
    """Return the codes in the order of the request, without partitions that do not exist."""
    missing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return [
        OffsetDeleteResponseTopic(
            topic.name,
            [
                OffsetDeleteResponsePartition(
                    each.partition_index, codes.get(TopicPartition(topic.name, each.partition_index), missing)
                )
                for each in topic.partitions
            ],
        )
        for topic in request.topics
    ]
