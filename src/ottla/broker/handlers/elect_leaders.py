"""ElectLeaders: on one broker every partition is led by the only one that can."""

from __future__ import annotations

from ottla.broker.node import BrokerNode
from ottla.broker.requests.call import Call
from ottla.errors import ErrorCode
from ottla.protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
    TopicPartitions,
)
from ottla.protocol.sentences import short

PREFERRED, UNCLEAN = 0, 1


def handle(node: BrokerNode, call: Call, request: ElectLeadersRequest) -> ElectLeadersResponse:
    """Who asks about every partition is told of those where something happened: none."""
    if request.election_type not in (PREFERRED, UNCLEAN):
        return refused(request)
    return ElectLeadersResponse(
        replica_election_results=[
            ReplicaElectionResult(topic.topic, [not_elected(node, topic, index) for index in topic.partitions])
            for topic in request.topic_partitions or ()
        ]
    )


def not_elected(node: BrokerNode, topic: TopicPartitions, index: int) -> PartitionResult:
    """Why a partition has no other leader now."""
    if node.topics.named(topic.topic) is None:
        return PartitionResult(index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such topic as {short(topic.topic)}")
    if node.partitions.find(topic.topic, index) is None:
        return PartitionResult(
            index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such partition as {short(topic.topic)}-{index}"
        )
    return PartitionResult(index, ErrorCode.ELECTION_NOT_NEEDED, "the partition has its preferred leader")


def refused(request: ElectLeadersRequest) -> ElectLeadersResponse:
    """The answer to who wants a kind of election that there is not; clients of version 0 look at partitions alone."""
    code, message = ErrorCode.INVALID_REQUEST, f"There is no election of type {request.election_type}"
    return ElectLeadersResponse(
        error_code=code,
        replica_election_results=[
            ReplicaElectionResult(topic.topic, [PartitionResult(index, code, message) for index in topic.partitions])
            for topic in request.topic_partitions or ()
        ],
    )
