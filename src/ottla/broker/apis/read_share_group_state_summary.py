"""ReadShareGroupStateSummary: the start offsets of partitions, without the states of their records."""

from __future__ import annotations

from ottla.broker.apis.share_state_calls import operate, topics_of
from ottla.broker.coordinators.share_coordinator import StateResult, SummarizeState
from ottla.broker.network_server.call import Call, Outcome
from ottla.broker.node import BrokerNode
from ottla.protocol.messages.read_share_group_state_summary import (
    PartitionResult,
    ReadShareGroupStateSummaryRequest,
    ReadShareGroupStateSummaryResponse,
    ReadStateSummaryResult,
)
from ottla.protocol.schema import Message


def handle(node: BrokerNode, call: Call, request: ReadShareGroupStateSummaryRequest) -> Message | Outcome:
    """Return the start offset of each partition, -1 if it has no state, or an error code."""
    return operate(
        node,
        call,
        request,
        lambda key, part: SummarizeState(key),
        partition_result,
        lambda results: ReadShareGroupStateSummaryResponse(topics_of(ReadStateSummaryResult, results)),
    )


def partition_result(partition: int, result: StateResult) -> PartitionResult:
    if result.error:
        return PartitionResult(partition, result.error)
    return PartitionResult(
        partition,
        state_epoch=max(0, result.state_epoch),
        leader_epoch=max(0, result.leader_epoch),
        start_offset=result.start_offset,
        delivery_complete_count=result.delivery_complete_count,
    )
