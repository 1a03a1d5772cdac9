"""DeleteRecords: everything of a partition below an offset; the files go with the next look of retention.

Where other brokers have copies the answer waits until those have heard of it who are there: else one of them might lead next, and
have the records again.
"""

from __future__ import annotations

import logging
from functools import partial

from ottla.broker.access import denied
from ottla.broker.fetching.waiting import WaitingFetch
from ottla.broker.node import BrokerNode
from ottla.broker.partitions.leadership import Leadership
from ottla.broker.partitions.partition import Partition
from ottla.broker.requests.call import Call, Outcome
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
Unheard = tuple[Leadership, DeleteRecordsPartitionResult, int]
"""What copies have to hear of: they are to begin at that offset."""


def handle(node: BrokerNode, call: Call, request: DeleteRecordsRequest) -> DeleteRecordsResponse | Outcome:
    """When the answer is there the records are out of reach, also after a crash."""
    unheard: list[Unheard] = []
    topics = [
        DeleteRecordsTopicResult(
            topic.name, [deleted(node, call, topic.name, wanted, unheard) for wanted in topic.partitions]
        )
        for topic in request.topics
    ]
    if any(not result.error_code for topic in topics for result in topic.partitions):
        keep_starts(node)
    return settle(node, call, request, DeleteRecordsResponse(topics=topics), unheard)


def settle(
    node: BrokerNode,
    call: Call,
    request: DeleteRecordsRequest,
    response: DeleteRecordsResponse,
    unheard: list[Unheard],
) -> DeleteRecordsResponse | Outcome:
    """The answer, once all copies begin there, or the time for that is over."""
    left = [each for each in unheard if not is_heard(each)]
    if not left:
        return response
    deadline = call.received + request.timeout_ms / 1000
    if node.waiting.closed or node.clock.monotonic() >= deadline:
        for _, result, _ in left:
            result.error_code = ErrorCode.REQUEST_TIMED_OUT
        return response
    again = partial(call.resume, lambda: settle(node, call, request, response, left))
    waiting = WaitingFetch([leadership.copies for leadership, _, _ in left], 0, again, call)
    node.waiting.add(waiting, deadline)
    return Outcome.LATER


def is_heard(unheard: Unheard) -> bool:
    """Whether all copies begin where they should by now; another leader may not know of it."""
    leadership, result, offset = unheard
    if leadership.ended:
        result.low_watermark, result.error_code = -1, ErrorCode.NOT_LEADER_OR_FOLLOWER
        return True
    result.low_watermark = leadership.low_watermark
    return result.low_watermark >= offset


def deleted(
    node: BrokerNode, call: Call, topic: str, wanted: DeleteRecordsPartition, unheard: list[Unheard]
) -> DeleteRecordsPartitionResult:
    """Where one partition begins now, or why it still begins where it did."""
    if denied(node, call, Operation.DELETE, ResourceType.TOPIC, topic):
        return refused(wanted, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    partition = node.partitions.find(topic, wanted.partition_index)
    if partition is None:
        return refused(wanted, node.partitions.absent_code(topic, wanted.partition_index))
    try:
        error = refusal(partition)
        return refused(wanted, error) if error else moved(node, partition, wanted, unheard)
    except KafkaError as error:
        return refused(wanted, error.code)


def refusal(partition: Partition) -> int:
    """Why nothing may be deleted from a partition; NONE where something may."""
    if not partition.leads:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    if partition.internal:
        return ErrorCode.INVALID_TOPIC_EXCEPTION
    if not partition.log.config.deletes:
        return ErrorCode.POLICY_VIOLATION
    return ErrorCode.NONE


def moved(
    node: BrokerNode, partition: Partition, wanted: DeleteRecordsPartition, unheard: list[Unheard]
) -> DeleteRecordsPartitionResult:
    """Let the partition begin at the wanted offset; it never begins earlier than it did."""
    log = partition.log
    offset = log.high_watermark if wanted.offset == TO_THE_END else wanted.offset
    log.advance_start(offset)
    node.waiting.changed(partition)
    result = DeleteRecordsPartitionResult(wanted.partition_index, log.start_offset)
    if partition.leadership is not None:
        unheard.append((partition.leadership, result, offset))
    return result


def refused(wanted: DeleteRecordsPartition, code: int) -> DeleteRecordsPartitionResult:
    """The answer for a partition that stays as it is."""
    return DeleteRecordsPartitionResult(wanted.partition_index, -1, code)


def keep_starts(node: BrokerNode) -> None:
    """Write down where partitions begin; where that fails it is tried again from time to time, as for Kafka's."""
    try:
        node.directory.checkpoint()
    except KafkaError as error:
        log.error("%s; a crash now would bring deleted records back", error)
