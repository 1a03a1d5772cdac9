"""AlterPartitionReassignments: a partition may move to where it is; there is no other broker."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.broker.node import BrokerNode
from ottla.broker.requests.call import Call
from ottla.errors import ErrorCode
from ottla.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from ottla.protocol.sentences import short


def handle(
    node: BrokerNode, call: Call, request: AlterPartitionReassignmentsRequest
) -> AlterPartitionReassignmentsResponse:
    """Nothing changes; each partition has its own result."""
    return AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=request.allow_replication_factor_change,
        responses=[
            ReassignableTopicResponse(
                topic.name, [reassigned(node, topic.name, partition) for partition in topic.partitions]
            )
            for topic in request.topics
        ],
    )


def reassigned(node: BrokerNode, topic: str, wanted: ReassignablePartition) -> ReassignablePartitionResponse:
    """Whether a partition is where it shall be."""
    index = wanted.partition_index
    if node.partitions.find(topic, index) is None:
        message = f"Unable to find partition {short(topic)}-{index}."
        return ReassignablePartitionResponse(index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, message)
    if wanted.replicas is None:
        message = "nothing is being moved in this partition"
        return ReassignablePartitionResponse(index, ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, message)
    fault = fault_of(wanted.replicas, node.config.node_id)
    return ReassignablePartitionResponse(index, ErrorCode.INVALID_REPLICA_ASSIGNMENT if fault else 0, fault)


def fault_of(replicas: Sequence[int], node_id: int) -> str | None:
    """What is wrong with an assignment, in a sentence; None when nothing is."""
    if not replicas:
        return "the list of replicas is empty: name the brokers that are to hold the partition"
    for replica in replicas:
        if replica < 0:
            return f"{replica} is no broker id: ids are not negative"
        if replica != node_id:
            return f"there is no broker {replica} here, only broker {node_id}"
    if len(replicas) > 1:
        return f"broker {node_id} is named {len(replicas)} times: a broker holds one replica of a partition"
    return None
