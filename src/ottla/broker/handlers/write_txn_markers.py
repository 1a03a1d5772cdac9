"""WriteTxnMarkers: the ends of transactions, written into their partitions on behalf of a coordinator."""

from __future__ import annotations

from ottla.broker.coordinators.end_markers import TransactionEnd
from ottla.broker.node import BrokerNode
from ottla.broker.requests.call import Call
from ottla.model import TopicPartition
from ottla.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)


def handle(node: BrokerNode, call: Call, request: WriteTxnMarkersRequest) -> WriteTxnMarkersResponse:
    """One result for each marker and partition."""
    return WriteTxnMarkersResponse(
        markers=[WritableTxnMarkerResult(marker.producer_id, written(node, marker)) for marker in request.markers]
    )


def written(node: BrokerNode, marker: WritableTxnMarker) -> list[WritableTxnMarkerTopicResult]:
    """What has become of one marker in its partitions."""
    return [
        WritableTxnMarkerTopicResult(
            topic.name,
            [
                WritableTxnMarkerPartitionResult(
                    index, node.end_markers.write(TopicPartition(topic.name, index), end_of(marker))
                )
                for index in topic.partition_indexes
            ],
        )
        for topic in marker.topics
    ]


def end_of(marker: WritableTxnMarker) -> TransactionEnd:
    return TransactionEnd(
        marker.producer_id,
        marker.producer_epoch,
        marker.transaction_result,
        marker.coordinator_epoch,
        marker.transaction_version,
    )
