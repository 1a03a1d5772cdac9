"""WriteTxnMarkers: the ends of transactions, written into their partitions on behalf of a coordinator."""

from __future__ import annotations

import logging

from ottla.broker.call import Call
from ottla.broker.node import Node
from ottla.errors import CorruptRecordError, ErrorCode, KafkaError
from ottla.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from ottla.records.control import ControlType
from ottla.records.end_marker import EndMarker, encode_end_marker
from ottla.storage.producer_entry import Origin

log = logging.getLogger(__name__)


def handle(node: Node, call: Call, request: WriteTxnMarkersRequest) -> WriteTxnMarkersResponse:
    """One result for each marker and partition."""
    return WriteTxnMarkersResponse(
        markers=[WritableTxnMarkerResult(marker.producer_id, written(node, marker)) for marker in request.markers]
    )


def written(node: Node, marker: WritableTxnMarker) -> list[WritableTxnMarkerTopicResult]:
    """What has become of one marker in its partitions."""
    return [
        WritableTxnMarkerTopicResult(
            topic.name,
            [
                WritableTxnMarkerPartitionResult(index, write(node, topic.name, index, marker))
                for index in topic.partition_indexes
            ],
        )
        for topic in marker.topics
    ]


def write(node: Node, topic: str, index: int, marker: WritableTxnMarker) -> int:
    """Append a marker; NONE, or why it could not be."""
    partition = node.partitions.find(topic, index)
    if partition is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if marker.producer_id < 0 or marker.producer_epoch < 0:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    kind = ControlType.COMMIT if marker.transaction_result else ControlType.ABORT
    end = EndMarker(kind, marker.coordinator_epoch)
    data = encode_end_marker(marker.producer_id, marker.producer_epoch, end, node.clock.wall_ms())
    try:
        node.append(partition, data, origin=Origin.COORDINATOR, transaction_version=marker.transaction_version)
    except KafkaError as error:
        log.warning("%s: the end of a transaction was refused: %s", partition.topic_partition, error)
        return error.code
    except CorruptRecordError as error:
        log.error("%s: the end of a transaction could not be written: %s", partition.topic_partition, error)
        return ErrorCode.KAFKA_STORAGE_ERROR
    return ErrorCode.NONE
