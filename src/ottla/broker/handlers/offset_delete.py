"""OffsetDelete: forget what a group committed for partitions that it does not read any more (KIP-496)."""

from __future__ import annotations

from collections.abc import Iterator

from ottla.broker.access import denied
from ottla.broker.group_calls import code_of, once_committed
from ottla.broker.node import BrokerNode
from ottla.broker.requests.call import Call, Outcome
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
    """A code for each partition, or one for the group."""
    return once_committed(node, call, (request.group_id,), lambda: deleted(node, call, request), OffsetDeleteResponse)


def deleted(node: BrokerNode, call: Call, request: OffsetDeleteRequest) -> OffsetDeleteResponse:
    """What has become of each."""
    if not request.group_id:
        return OffsetDeleteResponse(ErrorCode.INVALID_GROUP_ID)
    refused = {
        topic.name for topic in request.topics if denied(node, call, Operation.READ, ResourceType.TOPIC, topic.name)
    }
    wanted = [each for each in named(request) if each.topic not in refused and node.topics.has(*each)]
    try:
        reply = node.groups.ask(
            request.group_id, lambda ticket: OffsetDeletionRequested(ticket, request.group_id, wanted), make=False
        )
    except KafkaError as error:
        return OffsetDeleteResponse(code_of(node, request.group_id, error))
    if isinstance(reply, int):
        return OffsetDeleteResponse(reply)
    codes: dict[TopicPartition, int] = dict(zip(wanted, reply, strict=True))
    codes |= {each: ErrorCode.TOPIC_AUTHORIZATION_FAILED for each in named(request) if each.topic in refused}
    return OffsetDeleteResponse(topics=answered(request, codes))


def named(request: OffsetDeleteRequest) -> Iterator[TopicPartition]:
    """The partitions that the request names."""
    for topic in request.topics:
        for partition in topic.partitions:
            yield TopicPartition(topic.name, partition.partition_index)


def answered(request: OffsetDeleteRequest, codes: dict[TopicPartition, int]) -> list[OffsetDeleteResponseTopic]:
    """The codes in the order of the request; partitions that are not there have none."""
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
