"""DeleteRecords: everything of a partition below an offset; the files go with the next look of retention."""

from __future__ import annotations

import logging

from ottla.broker.access import denied
from ottla.broker.node import BrokerNode
from ottla.broker.partitions.partition import Partition
from ottla.broker.requests.call import Call
from ottla.errors import ErrorCode, KafkaError
from ottla.protocol.acl import Operation, ResourceType
from ottla.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)

log = logging.getLogger(__name__)

TO_THE_END = -1
"""Stands for the high watermark."""


def handle(node: BrokerNode, call: Call, request: DeleteRecordsRequest) -> DeleteRecordsResponse:
    """When the answer is there the records are out of reach, also after a crash."""
    topics = [
        DeleteRecordsTopicResult(topic.name, [deleted(node, call, topic.name, wanted) for wanted in topic.partitions])
        for topic in request.topics
    ]
    if any(not result.error_code for topic in topics for result in topic.partitions):
        keep_starts(node)
    return DeleteRecordsResponse(topics=topics)


def deleted(node: BrokerNode, call: Call, topic: str, wanted: DeleteRecordsPartition) -> DeleteRecordsPartitionResult:
    """Where one partition begins now, or why it still begins where it did."""
    if denied(node, call, Operation.DELETE, ResourceType.TOPIC, topic):
        return refused(wanted, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    partition = node.partitions.find(topic, wanted.partition_index)
    if partition is None:
        return refused(wanted, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    try:
        error = refusal(partition)
        return refused(wanted, error) if error else moved(node, partition, wanted)
    except KafkaError as error:
        return refused(wanted, error.code)


def refusal(partition: Partition) -> int:
    """Why nothing may be deleted from a partition; NONE where something may."""
    if partition.internal:
        return ErrorCode.INVALID_TOPIC_EXCEPTION
    if not partition.log.config.deletes:
        return ErrorCode.POLICY_VIOLATION
    return ErrorCode.NONE


def moved(node: BrokerNode, partition: Partition, wanted: DeleteRecordsPartition) -> DeleteRecordsPartitionResult:
    """Let the partition begin at the wanted offset; it never begins earlier than it did."""
    log = partition.log
    log.advance_start(log.high_watermark if wanted.offset == TO_THE_END else wanted.offset)
    node.waiting.changed(partition)
    return DeleteRecordsPartitionResult(wanted.partition_index, log.start_offset)


def refused(wanted: DeleteRecordsPartition, code: int) -> DeleteRecordsPartitionResult:
    """The answer for a partition that stays as it is."""
    return DeleteRecordsPartitionResult(wanted.partition_index, -1, code)


def keep_starts(node: BrokerNode) -> None:
    """Write down where partitions begin; where that fails it is tried again from time to time, as for Kafka's."""
    try:
        node.directory.checkpoint()
    except KafkaError as error:
        log.error("%s; a crash now would bring deleted records back", error)
