"""WriteTxnMarkers: append transaction markers on behalf of a coordinator.

    leader, enough replicas in sync? ──► appended ──► committed ──► answered

The coordinator removes the transaction once all its partitions have answered. A marker with other replicas therefore
counts only when it is committed; one that is rejected or late is sent again.
"""

from __future__ import annotations

from functools import partial

from ottla.broker.coordinators.transaction_markers import TransactionEnd
from ottla.broker.network_server.call import Call, Outcome
from ottla.broker.node import BrokerNode
from ottla.broker.replica_manager.leadership import Leadership, WaitingProduce
from ottla.errors import ErrorCode
from ottla.model import TopicPartition
from ottla.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

COMMITTED_SECONDS = 30.0
"""`request.timeout.ms` of the coordinators, which retry after that."""
Uncommitted = tuple[Leadership, WritableTxnMarkerPartitionResult, int]
"""A marker that must be committed: the leader, the place of the result, and the end offset."""


def handle(node: BrokerNode, call: Call, request: WriteTxnMarkersRequest) -> WriteTxnMarkersResponse | Outcome:
    """Append the markers. Return one result for each marker and partition."""
    uncommitted: list[Uncommitted] = []
    response = WriteTxnMarkersResponse(
        markers=[
            WritableTxnMarkerResult(marker.producer_id, write_marker(node, marker, uncommitted))
            for marker in request.markers
        ]
    )
    return wait_for_commit(node, call, response, uncommitted) if uncommitted else response


def wait_for_commit(
    node: BrokerNode, call: Call, response: WriteTxnMarkersResponse, uncommitted: list[Uncommitted]
) -> WriteTxnMarkersResponse | Outcome:
    """Return the response once every marker is committed, or its time is over."""
    left = [each for each in uncommitted if not is_settled(each)]
    if not left:
        return response
    deadline = call.received + COMMITTED_SECONDS
    if node.waiting.closed or node.clock.monotonic() >= deadline:
        for _, result, _ in left:
            result.error_code = ErrorCode.REQUEST_TIMED_OUT
        return response
    required: dict[Leadership, int] = {}
    for leadership, _, end_offset in left:
        required[leadership] = min(end_offset, required.get(leadership, end_offset))
    waiting = WaitingProduce(required, partial(call.resume, lambda: wait_for_commit(node, call, response, left)), call)
    node.waiting.add(waiting, deadline)
    return Outcome.LATER


def is_settled(uncommitted: Uncommitted) -> bool:
    leadership, result, end_offset = uncommitted
    code = leadership.find_outcome(end_offset)
    if code:
        result.error_code = code
    return code is not None


def write_marker(
    node: BrokerNode, marker: WritableTxnMarker, uncommitted: list[Uncommitted]
) -> list[WritableTxnMarkerTopicResult]:
    """Append one marker to its partitions and return the results."""
    return [
        WritableTxnMarkerTopicResult(
            topic.name,
            [
                write_partition_marker(node, TopicPartition(topic.name, index), read_end(marker), uncommitted)
                for index in topic.partition_indexes
            ],
        )
        for topic in marker.topics
    ]


def write_partition_marker(
    node: BrokerNode, place: TopicPartition, end: TransactionEnd, uncommitted: list[Uncommitted]
) -> WritableTxnMarkerPartitionResult:
    """Append to one partition, and collect what has to be committed before the response."""
    outcome = node.end_markers.write_led(place, end)
    result = WritableTxnMarkerPartitionResult(place.partition, outcome.code)
    if outcome.uncommitted is not None:
        leadership, end_offset = outcome.uncommitted
        uncommitted.append((leadership, result, end_offset))
    return result


def read_end(marker: WritableTxnMarker) -> TransactionEnd:
    return TransactionEnd(
        marker.producer_id,
        marker.producer_epoch,
        marker.transaction_result,
        marker.coordinator_epoch,
        marker.transaction_version,
    )
