"""DeleteRecords: delete the records of a partition below an offset. The files are deleted by retention.

If other brokers have replicas, the response waits until those that are alive have the new start: one of them could lead
next otherwise, and return the records.
"""

from __future__ import annotations

import logging
from functools import partial

from ottla.broker.network_server.call import Call, Outcome
from ottla.broker.node import BrokerNode
from ottla.broker.replica_manager.leadership import Leadership
from ottla.broker.replica_manager.partition import Partition
from ottla.broker.replica_manager.waiting_fetch import WaitingFetch
from ottla.broker.security.authorization import lacks_permission
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
"""The high watermark."""
UnreplicatedStart = tuple[Leadership, DeleteRecordsPartitionResult, int]
"""A log start that followers must have, with the place of the result."""


def handle(node: BrokerNode, call: Call, request: DeleteRecordsRequest) -> DeleteRecordsResponse | Outcome:
    """Advance the log starts. Once the response is sent, the records are not readable any more, also after a crash."""
    unreplicated: list[UnreplicatedStart] = []
    topics = [
        DeleteRecordsTopicResult(
            topic.name,
            [delete_partition_records(node, call, topic.name, wanted, unreplicated) for wanted in topic.partitions],
        )
        for topic in request.topics
    ]
    if any(not result.error_code for topic in topics for result in topic.partitions):
        write_log_starts(node)
    return wait_for_replicas(node, call, request, DeleteRecordsResponse(topics=topics), unreplicated)


def wait_for_replicas(
    node: BrokerNode,
    call: Call,
    request: DeleteRecordsRequest,
    response: DeleteRecordsResponse,
    unreplicated: list[UnreplicatedStart],
) -> DeleteRecordsResponse | Outcome:
    """Return the response once all followers have the log start, or after the timeout."""
    left = [each for each in unreplicated if not is_replicated(each)]
    if not left:
        return response
    deadline = call.received + request.timeout_ms / 1000
    if node.waiting.closed or node.clock.monotonic() >= deadline:
        for _, result, _ in left:
            result.error_code = ErrorCode.REQUEST_TIMED_OUT
        return response
    again = partial(call.resume, lambda: wait_for_replicas(node, call, request, response, left))
    waiting = WaitingFetch([leadership.copies for leadership, _, _ in left], 0, again, call)
    node.waiting.add(waiting, deadline)
    return Outcome.LATER


def is_replicated(start: UnreplicatedStart) -> bool:
    """Return True if all followers have the log start, or another broker leads."""
    leadership, result, offset = start
    if leadership.ended:
        result.low_watermark, result.error_code = -1, ErrorCode.NOT_LEADER_OR_FOLLOWER
        return True
    result.low_watermark = leadership.low_watermark
    return result.low_watermark >= offset


def delete_partition_records(
    node: BrokerNode, call: Call, topic: str, wanted: DeleteRecordsPartition, unreplicated: list[UnreplicatedStart]
) -> DeleteRecordsPartitionResult:
    """Return the new log start of one partition, or an error code."""
    if lacks_permission(node, call, Operation.DELETE, ResourceType.TOPIC, topic):
        return build_error(wanted, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    partition = node.partitions.find(topic, wanted.partition_index)
    if partition is None:
        return build_error(wanted, node.topics.absent_code(topic, wanted.partition_index))
    try:
        error = find_error(partition)
        return build_error(wanted, error) if error else move_log_start(node, partition, wanted, unreplicated)
    except KafkaError as error:
        return build_error(wanted, error.code)


def find_error(partition: Partition) -> int:
    """Return why records of a partition cannot be deleted, NONE if they can."""
    if not partition.leads:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    if partition.internal:
        return ErrorCode.INVALID_TOPIC_EXCEPTION
    if not partition.log.config.is_deleting:
        return ErrorCode.POLICY_VIOLATION
    return ErrorCode.NONE


def move_log_start(
    node: BrokerNode, partition: Partition, wanted: DeleteRecordsPartition, unreplicated: list[UnreplicatedStart]
) -> DeleteRecordsPartitionResult:
    """Advance the log start to the requested offset. It never moves back."""
    log = partition.log
    offset = log.high_watermark if wanted.offset == TO_THE_END else wanted.offset
    log.advance_start(offset)
    node.waiting.handle_change(partition)
    result = DeleteRecordsPartitionResult(wanted.partition_index, log.start_offset)
    if partition.leadership is not None:
        unreplicated.append((partition.leadership, result, offset))
    return result


def build_error(wanted: DeleteRecordsPartition, code: int) -> DeleteRecordsPartitionResult:
    """Return an error for a partition."""
    return DeleteRecordsPartitionResult(wanted.partition_index, -1, code)


def write_log_starts(node: BrokerNode) -> None:
    """Write the log starts to a file. A failed write is repeated later, as in Kafka."""
    try:
        node.directory.checkpoint()
    except KafkaError as error:
        log.error("%s; until this is written, a crash would restore deleted records", error)
