"""ListPartitionReassignments: on one broker a partition has nowhere to move, so none is moving."""

from __future__ import annotations

from ottla.broker.node import BrokerNode
from ottla.broker.requests.call import Call
from ottla.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)


def handle(
    node: BrokerNode, call: Call, request: ListPartitionReassignmentsRequest
) -> ListPartitionReassignmentsResponse:
    """Partitions that do not move are left out, and so are those that are not there."""
    return ListPartitionReassignmentsResponse()
