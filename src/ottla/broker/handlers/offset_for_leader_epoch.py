"""OffsetForLeaderEpoch: where a leader's time ended, so that a reader finds out that its log was cut (KIP-101, KIP-320)."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.broker.call import Call
from ottla.broker.node import Node
from ottla.broker.partition import Partition
from ottla.errors import ErrorCode, KafkaError
from ottla.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)

UNKNOWN = (-1, -1)
"""The epoch and the end of a time of which nothing is known."""


def handle(node: Node, call: Call, request: OffsetForLeaderEpochRequest) -> OffsetForLeaderEpochResponse:
    """One end for each partition."""
    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderTopicResult(topic.topic, [end(node, topic.topic, wanted) for wanted in topic.partitions])
            for topic in request.topics
        ]
    )


def end(node: Node, topic: str, wanted: OffsetForLeaderPartition) -> EpochEndOffset:
    """The answer for one partition."""
    partition = node.partitions.find(topic, wanted.partition)
    if partition is None:
        return EpochEndOffset(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, wanted.partition)
    error = partition.epoch_error(wanted.current_leader_epoch)
    if error:
        return EpochEndOffset(error, wanted.partition)
    try:
        epoch, offset = end_of(epochs_of(partition), wanted.leader_epoch, partition.log.high_watermark)
    except KafkaError as failure:
        return EpochEndOffset(failure.code, wanted.partition)
    return EpochEndOffset(ErrorCode.NONE, wanted.partition, epoch, offset)


def epochs_of(partition: Partition) -> list[tuple[int, int]]:
    """Epochs and their first offsets; the present one counts before its first record is written."""
    entries = partition.log.epochs.entries
    if entries and entries[-1][0] >= partition.leader_epoch:
        return entries
    return [*entries, (partition.leader_epoch, partition.log.end_offset)]


def end_of(epochs: Sequence[tuple[int, int]], wanted: int, log_end: int) -> tuple[int, int]:
    """The last epoch that is not after `wanted`, and the offset at which it ended."""
    if wanted < 0 or wanted > epochs[-1][0]:
        return UNKNOWN
    if wanted == epochs[-1][0]:
        return wanted, log_end
    ended = next(start for epoch, start in epochs if epoch > wanted)
    return max((epoch for epoch, _ in epochs if epoch <= wanted), default=wanted), ended
