"""ReadShareGroupState: the state of partitions, for their leader; earlier leaders are fenced."""

from __future__ import annotations

from ottla.broker.apis.share_state_calls import operate, topics_of
from ottla.broker.coordinators.share_coordinator import ReadState, StateResult
from ottla.broker.network_server.call import Call, Outcome
from ottla.broker.node import BrokerNode
from ottla.coordination.share.share_state import to_wire_batches
from ottla.protocol.messages.read_share_group_state import (
    PartitionResult,
    ReadShareGroupStateRequest,
    ReadShareGroupStateResponse,
    ReadStateResult,
)
from ottla.protocol.schema import Message


def handle(node: BrokerNode, call: Call, request: ReadShareGroupStateRequest) -> Message | Outcome:
    """Return the state of each partition, or an error code."""
    return operate(
        node,
        call,
        request,
        lambda key, part: ReadState(key, part.leader_epoch),
        partition_result,
        lambda results: ReadShareGroupStateResponse(topics_of(ReadStateResult, results)),
    )


def partition_result(partition: int, result: StateResult) -> PartitionResult:
    if result.error:
        return PartitionResult(partition, result.error)
    batches = to_wire_batches(result.batches)
    return PartitionResult(
        partition, state_epoch=result.state_epoch, start_offset=result.start_offset, state_batches=batches
    )
