"""DeleteShareGroupState: delete the states of partitions of a share group."""

from __future__ import annotations

from ottla.broker.apis.share_state_calls import operate, topics_of
from ottla.broker.coordinators.share_coordinator import DeleteState
from ottla.broker.network_server.call import Call, Outcome
from ottla.broker.node import BrokerNode
from ottla.protocol.messages.delete_share_group_state import (
    DeleteShareGroupStateRequest,
    DeleteShareGroupStateResponse,
    DeleteStateResult,
    PartitionResult,
)
from ottla.protocol.schema import Message


def handle(node: BrokerNode, call: Call, request: DeleteShareGroupStateRequest) -> Message | Outcome:
    """Return an error code for each partition."""
    return operate(
        node,
        call,
        request,
        lambda key, part: DeleteState(key),
        lambda partition, result: PartitionResult(partition, result.error),
        lambda results: DeleteShareGroupStateResponse(topics_of(DeleteStateResult, results)),
    )
