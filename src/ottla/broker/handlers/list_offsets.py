"""ListOffsets: where a partition begins and ends, and which record is the first of a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from ottla.broker.access import denied
from ottla.broker.node import BrokerNode
from ottla.broker.partitions.partition import Partition
from ottla.broker.requests.call import Call
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
"""The first offset on this broker's own disk: there is no other (KIP-405)."""
LATEST_TIERED = -5
"""The last offset in remote storage, which there is not (KIP-1005)."""
EARLIEST_PENDING_UPLOAD = -6
"""The first offset on its way to remote storage (KIP-1023)."""
STARTS = (EARLIEST, EARLIEST_LOCAL)
UNSETTLED_SINCE = 5
"""From this version on clients know that a new leader may not know yet what is committed (KIP-207)."""
READ_COMMITTED = 1
"""The isolation level of those who want nothing of open transactions."""
NOTHING = OffsetAndTimestamp(-1, -1)
SINCE = {MAX_TIMESTAMP: 7, EARLIEST_LOCAL: 8, LATEST_TIERED: 9, EARLIEST_PENDING_UPLOAD: 11}
"""The versions that brought the later ones of the special timestamps."""


def handle(node: BrokerNode, call: Call, request: ListOffsetsRequest) -> ListOffsetsResponse:
    """One offset for each partition; -1 where nothing answers the question."""
    end = end_for(request)
    twice = named_twice(request)
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                topic.name,
                [
                    found(node, call.version, topic.name, wanted, end)
                    if not (error := question_error(node, call, topic.name, wanted, twice))
                    else ListOffsetsPartitionResponse(wanted.partition_index, error)
                    for wanted in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def named_twice(request: ListOffsetsRequest) -> set[tuple[str, int]]:
    """The partitions of which more than one thing is asked; an answer is known by its partition alone."""
    counts = Counter((topic.name, wanted.partition_index) for topic in request.topics for wanted in topic.partitions)
    return {partition for partition, count in counts.items() if count > 1}


def question_error(
    node: BrokerNode, call: Call, topic: str, wanted: ListOffsetsPartition, twice: set[tuple[str, int]]
) -> int:
    """What is wrong with a question, whether or not there is such a partition."""
    if denied(node, call, Operation.DESCRIBE, ResourceType.TOPIC, topic):
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    if (topic, wanted.partition_index) in twice:
        return ErrorCode.INVALID_REQUEST
    return timestamp_error(call.version, wanted.timestamp)


def end_for(request: ListOffsetsRequest) -> Callable[[Log], int]:
    """Where a log ends for who asks: other brokers see all of it, clients what is committed, and stable if they like."""
    if request.replica_id >= 0:
        return lambda log: log.end_offset
    if request.isolation_level == READ_COMMITTED:
        return lambda log: log.last_stable_offset
    return lambda log: log.high_watermark


def found(
    node: BrokerNode, version: int, topic: str, wanted: ListOffsetsPartition, end: Callable[[Log], int]
) -> ListOffsetsPartitionResponse:
    """The answer for one partition."""
    partition = node.partitions.find(topic, wanted.partition_index)
    if partition is None:
        return ListOffsetsPartitionResponse(
            wanted.partition_index, node.partitions.absent_code(topic, wanted.partition_index)
        )
    error = partition.epoch_error(wanted.current_leader_epoch)
    if error:
        return ListOffsetsPartitionResponse(wanted.partition_index, error)
    if partition.leadership is not None and wanted.timestamp not in STARTS and not partition.leadership.is_settled:
        code = ErrorCode.OFFSET_NOT_AVAILABLE if version >= UNSETTLED_SINCE else ErrorCode.LEADER_NOT_AVAILABLE
        return ListOffsetsPartitionResponse(wanted.partition_index, code)
    try:
        answer = look(partition.log, wanted.timestamp, end(partition.log))
        epoch = epoch_of(partition, answer.offset)
    except KafkaError as failure:
        return ListOffsetsPartitionResponse(wanted.partition_index, failure.code)
    except CorruptRecordError as failure:
        node.partitions.complaints.tell(f"cannot search {partition.topic_partition}: {failure}")
        return ListOffsetsPartitionResponse(wanted.partition_index, ErrorCode.CORRUPT_MESSAGE)
    if version < EPOCHS_SINCE:
        epoch = -1
    return ListOffsetsPartitionResponse(wanted.partition_index, 0, answer.timestamp, answer.offset, epoch)


EPOCHS_SINCE = 4
"""From this version on the answer has the leader epoch of the offset."""


def timestamp_error(version: int, timestamp: int) -> int:
    """What is wrong with a special timestamp in a version; NONE where nothing is."""
    known = timestamp >= 0 or timestamp in (EARLIEST, LATEST) or version >= SINCE.get(timestamp, version + 1)
    return ErrorCode.NONE if known else ErrorCode.UNSUPPORTED_VERSION


def look(log: Log, timestamp: int, end: int) -> OffsetAndTimestamp:
    """The offset that a timestamp, special or not, stands for; records from `end` on are not there."""
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


def epoch_of(partition: Partition, offset: int) -> int:
    """The epoch of the leader that wrote the record at `offset`, or that will; -1 where there is none."""
    if offset < 0:
        return -1
    written = [epoch for epoch, start in partition.log.epochs.entries if start <= offset]
    return written[-1] if written else -1
