"""The ends of transactions, written into the partitions that took part."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ottla.errors import CorruptRecordError, ErrorCode, KafkaError
from ottla.model import TopicPartition
from ottla.records.control import ControlType
from ottla.records.end_marker import EndMarker, encode_end_marker
from ottla.storage.producer_entry import Origin

if TYPE_CHECKING:
    from ottla.broker.node import Node


class TransactionEnd(NamedTuple):
    """How a producer's transaction ended."""

    producer_id: int
    epoch: int
    commit: bool
    coordinator_epoch: int = 0
    version: int = 0
    """The `transaction.version` by which the epoch is checked."""


def write(node: Node, place: TopicPartition, end: TransactionEnd) -> int:
    """Append the marker to a partition; NONE, or why it could not be."""
    partition = node.partitions.find(*place)
    if partition is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if end.producer_id < 0 or end.epoch < 0:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    marker = EndMarker(ControlType.COMMIT if end.commit else ControlType.ABORT, end.coordinator_epoch)
    data = encode_end_marker(end.producer_id, end.epoch, marker, node.clock.wall_ms())
    try:
        node.append(partition, data, origin=Origin.COORDINATOR, transaction_version=end.version)
        node.groups.transaction_ended(partition, end.producer_id, commit=end.commit)
    except KafkaError as error:
        node.partitions.complaints.tell(f"{place}: the end of a transaction was refused: {error}")
        return error.code
    except CorruptRecordError as error:
        node.partitions.complaints.tell(f"{place}: the end of a transaction could not be written: {error}")
        return ErrorCode.KAFKA_STORAGE_ERROR
    return ErrorCode.NONE
