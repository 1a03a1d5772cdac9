"""ListOffsets: the start and end of partitions, and the first record from a timestamp on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from ottla.broker.network_server.call import Call
from ottla.broker.node import BrokerNode
from ottla.broker.replica_manager.partition import Partition
from ottla.broker.security.authorization import lacks_permission
from ottla.errors import CorruptRecordError, ErrorCode, KafkaError
from ottla.model import EARLIEST, LATEST, MAX_TIMESTAMP, OffsetAndTimestamp
from ottla.protocol.acl import Operation, ResourceType
from ottla.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from ottla.storage.log import Log

EARLIEST_LOCAL = -4
"""The first offset on the local disk, which is the first of all without remote storage (KIP-405)."""
LATEST_TIERED = -5
"""The last offset in remote storage, which this broker does not have (KIP-1005)."""
EARLIEST_PENDING_UPLOAD = -6
"""The first offset to be uploaded to remote storage (KIP-1023)."""
STARTS = (EARLIEST, EARLIEST_LOCAL)
UNSETTLED_SINCE = 5
"""From this version on clients know OFFSET_NOT_AVAILABLE, from a new leader without a high watermark (KIP-207)."""
READ_COMMITTED = 1
"""The isolation level of consumers that read no open transactions."""
NOTHING = OffsetAndTimestamp(-1, -1)
SINCE = {MAX_TIMESTAMP: 7, EARLIEST_LOCAL: 8, LATEST_TIERED: 9, EARLIEST_PENDING_UPLOAD: 11}
"""The version that introduced each special timestamp."""


def handle(node: BrokerNode, call: Call, request: ListOffsetsRequest) -> ListOffsetsResponse:
    """Return one offset for each partition; -1 if no record matches the timestamp."""
    end = choose_end(request)
    twice = find_duplicates(request)
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                topic.name,
                [
                    find_offset(node, call.version, topic.name, wanted, end)
                    if not (error := question_error(node, call, topic.name, wanted, twice))
                    else ListOffsetsPartitionResponse(wanted.partition_index, error)
                    for wanted in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def find_duplicates(request: ListOffsetsRequest) -> set[tuple[str, int]]:
    """Return the partitions with more than one query; results are identified by the partition alone."""
    counts = Counter((topic.name, wanted.partition_index) for topic in request.topics for wanted in topic.partitions)
    return {partition for partition, count in counts.items() if count > 1}


def question_error(
    node: BrokerNode, call: Call, topic: str, wanted: ListOffsetsPartition, twice: set[tuple[str, int]]
) -> int:
    """Return the error code for a query, before the partition is looked up."""
    if lacks_permission(node, call, Operation.DESCRIBE, ResourceType.TOPIC, topic):
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    if (topic, wanted.partition_index) in twice:
        return ErrorCode.INVALID_REQUEST
    return timestamp_error(call.version, wanted.timestamp)


def choose_end(request: ListOffsetsRequest) -> Callable[[Log], int]:
    """Return the end of a log for the client: the log end for brokers, else the high watermark or the last stable offset."""
    if request.replica_id >= 0:
        return lambda log: log.end_offset
    if request.isolation_level == READ_COMMITTED:
        return lambda log: log.last_stable_offset
    return lambda log: log.high_watermark


def find_offset(
    node: BrokerNode, version: int, topic: str, wanted: ListOffsetsPartition, end: Callable[[Log], int]
) -> ListOffsetsPartitionResponse:
    """Return the result for one partition."""
    partition = node.partitions.find(topic, wanted.partition_index)
    if partition is None:
        return ListOffsetsPartitionResponse(
            wanted.partition_index, node.topics.absent_code(topic, wanted.partition_index)
        )
    error = partition.epoch_error(wanted.current_leader_epoch)
    if error:
        return ListOffsetsPartitionResponse(wanted.partition_index, error)
    if partition.leadership is not None and wanted.timestamp not in STARTS and not partition.leadership.is_settled:
        code = ErrorCode.OFFSET_NOT_AVAILABLE if version >= UNSETTLED_SINCE else ErrorCode.LEADER_NOT_AVAILABLE
        return ListOffsetsPartitionResponse(wanted.partition_index, code)
    try:
        answer = search_log(partition.log, wanted.timestamp, end(partition.log))
        epoch = find_epoch(partition, answer.offset)
    except KafkaError as failure:
        return ListOffsetsPartitionResponse(wanted.partition_index, failure.code)
    except CorruptRecordError as failure:
        node.partitions.complaints.log(f"cannot search {partition.topic_partition}: {failure}")
        return ListOffsetsPartitionResponse(wanted.partition_index, ErrorCode.CORRUPT_MESSAGE)
    if version < EPOCHS_SINCE:
        epoch = -1
    return ListOffsetsPartitionResponse(wanted.partition_index, 0, answer.timestamp, answer.offset, epoch)


EPOCHS_SINCE = 4
"""From this version on the response has the leader epoch of the offset."""


def timestamp_error(version: int, timestamp: int) -> int:
    """Return the error code for a special timestamp in a version, NONE if it is valid."""
    known = timestamp >= 0 or timestamp in (EARLIEST, LATEST) or version >= SINCE.get(timestamp, version + 1)
    return ErrorCode.NONE if known else ErrorCode.UNSUPPORTED_VERSION


def search_log(log: Log, timestamp: int, end: int) -> OffsetAndTimestamp:
    """Return the offset for a timestamp or a special timestamp. Records from `end` on do not count."""
    if timestamp == LATEST:
        return OffsetAndTimestamp(end, -1)
    special = SPECIAL.get(timestamp)
    answer = log.offset_for_timestamp(timestamp) if special is None else special(log)
    if answer is None or (answer.offset >= end and answer.timestamp >= 0):
        return NOTHING
    return answer


SPECIAL: dict[int, Callable[[Log], OffsetAndTimestamp | None]] = {
    EARLIEST: lambda log: OffsetAndTimestamp(log.start_offset, -1),
    EARLIEST_LOCAL: lambda log: OffsetAndTimestamp(log.start_offset, -1),
    MAX_TIMESTAMP: lambda log: log.max_timestamp(),
    LATEST_TIERED: lambda log: None,
    EARLIEST_PENDING_UPLOAD: lambda log: None,
}


def find_epoch(partition: Partition, offset: int) -> int:
    """Return the leader epoch of the record at `offset`, or of the next one; -1 if there is none."""
    if offset < 0:
        return -1
    written = [epoch for epoch, start in partition.log.epochs.entries if start <= offset]
    return written[-1] if written else -1
