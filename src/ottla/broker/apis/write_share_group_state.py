"""WriteShareGroupState: store changed states of records, for the leader of their partition."""

from __future__ import annotations

from ottla.broker.apis.share_state_calls import operate, topics_of
from ottla.broker.coordinators.share_coordinator import WriteState
from ottla.broker.network_server.call import Call, Outcome
from ottla.broker.node import BrokerNode
from ottla.coordination.share.share_state import SharePartitionKey, from_wire_batches
from ottla.protocol.messages.write_share_group_state import (
    PartitionData,
    PartitionResult,
    WriteShareGroupStateRequest,
    WriteShareGroupStateResponse,
    WriteStateResult,
)
from ottla.protocol.schema import Message


def handle(node: BrokerNode, call: Call, request: WriteShareGroupStateRequest) -> Message | Outcome:
    """Return an error code for each partition."""
    return operate(
        node,
        call,
        request,
        operation_of,
        lambda partition, result: PartitionResult(partition, result.error),
        lambda results: WriteShareGroupStateResponse(topics_of(WriteStateResult, results)),
    )


def operation_of(key: SharePartitionKey, part: PartitionData) -> WriteState:
    return WriteState(
        key,
        part.state_epoch,
        part.leader_epoch,
        part.start_offset,
        part.delivery_complete_count,
        tuple(from_wire_batches(part.state_batches)),
    )
