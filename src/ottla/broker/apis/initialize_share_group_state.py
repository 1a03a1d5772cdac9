"""InitializeShareGroupState: create the states of partitions that a share group is to read."""

from __future__ import annotations

from ottla.broker.apis.share_state_calls import operate, topics_of
from ottla.broker.coordinators.share_coordinator import InitializeState
from ottla.broker.network_server.call import Call, Outcome
from ottla.broker.node import BrokerNode
from ottla.protocol.messages.initialize_share_group_state import (
    InitializeShareGroupStateRequest,
    InitializeShareGroupStateResponse,
    InitializeStateResult,
    PartitionResult,
)
from ottla.protocol.schema import Message


def handle(node: BrokerNode, call: Call, request: InitializeShareGroupStateRequest) -> Message | Outcome:
    """Return an error code for each partition."""
    return operate(
        node,
        call,
        request,
        lambda key, part: InitializeState(key, part.state_epoch, part.start_offset),
        lambda partition, result: PartitionResult(partition, result.error),
        lambda results: InitializeShareGroupStateResponse(topics_of(InitializeStateResult, results)),
    )
