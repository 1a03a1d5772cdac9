"""OffsetForLeaderEpoch: the end offset of a leader epoch, by which a reader detects a truncation (KIP-101, KIP-320)."""

from __future__ import annotations

from ottla.broker.network_server.call import Call
from ottla.broker.node import BrokerNode
from ottla.broker.security.authorization import lacks_permission
from ottla.errors import ErrorCode, KafkaError
from ottla.protocol.acl import Operation, ResourceType
from ottla.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)


def handle(node: BrokerNode, call: Call, request: OffsetForLeaderEpochRequest) -> OffsetForLeaderEpochResponse:
    """Return one end offset for each partition. Brokers may request all of them."""
    access = node.access
    is_broker = access is None or access.can_describe_as_broker(call)
    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderTopicResult(
                topic.topic,
                [
                    find_epoch_end(node, topic.topic, wanted)
                    if is_broker
                    or not lacks_permission(node, call, Operation.DESCRIBE, ResourceType.TOPIC, topic.topic)
                    else EpochEndOffset(ErrorCode.TOPIC_AUTHORIZATION_FAILED, wanted.partition)
                    for wanted in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def find_epoch_end(node: BrokerNode, topic: str, wanted: OffsetForLeaderPartition) -> EpochEndOffset:
    """Return the result for one partition."""
    partition = node.partitions.find(topic, wanted.partition)
    if partition is None:
        return EpochEndOffset(node.topics.absent_code(topic, wanted.partition), wanted.partition)
    error = partition.epoch_error(wanted.current_leader_epoch)
    if error:
        return EpochEndOffset(error, wanted.partition)
    try:
        epoch, offset = partition.end_of_epoch(wanted.leader_epoch)
    except KafkaError as failure:
        return EpochEndOffset(failure.code, wanted.partition)
    return EpochEndOffset(ErrorCode.NONE, wanted.partition, epoch, offset)
