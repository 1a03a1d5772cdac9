"""WriteTxnMarkers: the ends of transactions, written into their partitions on behalf of a coordinator.

    who leads, enough in sync? ──► appended ──► committed ──► answered

The coordinator forgets the transaction once all its partitions have answered. So where there are other copies a marker counts only when it
is committed; what is refused here, or has not come so far in time, is sent again.
"""

from __future__ import annotations

from functools import partial

from ottla.broker.coordinators.end_markers import TransactionEnd
from ottla.broker.node import BrokerNode
from ottla.broker.partitions.leadership import Leadership, WaitingProduce
from ottla.broker.requests.call import Call, Outcome
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
"""`request.timeout.ms` of the coordinators, who ask again after that."""
Uncommitted = tuple[Leadership, WritableTxnMarkerPartitionResult, int]
"""What must be committed, where the outcome goes, and up to which offset."""


def handle(node: BrokerNode, call: Call, request: WriteTxnMarkersRequest) -> WriteTxnMarkersResponse | Outcome:
    """One result for each marker and partition."""
    uncommitted: list[Uncommitted] = []
    response = WriteTxnMarkersResponse(
        markers=[
            WritableTxnMarkerResult(marker.producer_id, written(node, marker, uncommitted))
            for marker in request.markers
        ]
    )
    return settle(node, call, response, uncommitted) if uncommitted else response


def settle(
    node: BrokerNode, call: Call, response: WriteTxnMarkersResponse, uncommitted: list[Uncommitted]
) -> WriteTxnMarkersResponse | Outcome:
    """The answer, once it is known of every marker whether it is committed, or its time is over."""
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
    waiting = WaitingProduce(required, partial(call.resume, lambda: settle(node, call, response, left)), call)
    node.waiting.add(waiting, deadline)
    return Outcome.LATER


def is_settled(uncommitted: Uncommitted) -> bool:
    leadership, result, end_offset = uncommitted
    code = leadership.outcome(end_offset)
    if code:
        result.error_code = code
    return code is not None


def written(
    node: BrokerNode, marker: WritableTxnMarker, uncommitted: list[Uncommitted]
) -> list[WritableTxnMarkerTopicResult]:
    """What has become of one marker in its partitions."""
    return [
        WritableTxnMarkerTopicResult(
            topic.name,
            [
                write(node, TopicPartition(topic.name, index), end_of(marker), uncommitted)
                for index in topic.partition_indexes
            ],
        )
        for topic in marker.topics
    ]


def write(
    node: BrokerNode, place: TopicPartition, end: TransactionEnd, uncommitted: list[Uncommitted]
) -> WritableTxnMarkerPartitionResult:
    """Append to one partition, and note what must be committed first."""
    outcome = node.end_markers.write_led(place, end)
    result = WritableTxnMarkerPartitionResult(place.partition, outcome.code)
    if outcome.uncommitted is not None:
        leadership, end_offset = outcome.uncommitted
        uncommitted.append((leadership, result, end_offset))
    return result


def end_of(marker: WritableTxnMarker) -> TransactionEnd:
    return TransactionEnd(
        marker.producer_id,
        marker.producer_epoch,
        marker.transaction_result,
        marker.coordinator_epoch,
        marker.transaction_version,
    )
