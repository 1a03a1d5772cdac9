"""DescribeProducers: who has written to partitions with a producer id, and whose transactions are open there."""

from __future__ import annotations

from ottla.broker.access import denied
from ottla.broker.node import BrokerNode
from ottla.broker.requests.call import Call
from ottla.errors import ErrorCode, KafkaError
from ottla.protocol.acl import Operation, ResourceType
from ottla.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)
from ottla.protocol.sentences import short
from ottla.storage.producers.producer_entry import ProducerEntry


def handle(node: BrokerNode, call: Call, request: DescribeProducersRequest) -> DescribeProducersResponse:
    """The producers that each partition remembers."""
    return DescribeProducersResponse(
        topics=[
            TopicResponse(name, [described(node, call, name, index) for index in indexes])
            for name, indexes in partitions_of(request).items()
        ]
    )


def partitions_of(request: DescribeProducersRequest) -> dict[str, dict[int, None]]:
    """The partitions by topic, in the order of the request; one that is named again is described once."""
    partitions: dict[str, dict[int, None]] = {}
    for topic in request.topics:
        partitions.setdefault(topic.name, {}).update(dict.fromkeys(topic.partition_indexes))
    return partitions


def described(node: BrokerNode, call: Call, topic: str, index: int) -> PartitionResponse:
    if denied(node, call, Operation.READ, ResourceType.TOPIC, topic):
        return PartitionResponse(
            index, ErrorCode.TOPIC_AUTHORIZATION_FAILED, f"READ is not allowed on topic {short(topic)!r}"
        )
    partition = node.partitions.find(topic, index)
    if partition is None:
        code = node.topics.name_error(topic) or ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return PartitionResponse(index, code, f"there is no partition {short(topic)}-{index}")
    try:
        entries = partition.log.producers.entries.values()
    except KafkaError as error:
        return PartitionResponse(index, error.code, error.reason)
    return PartitionResponse(index, active_producers=[state_of(entry) for entry in entries])


def state_of(entry: ProducerEntry) -> ProducerState:
    return ProducerState(
        entry.producer_id,
        entry.epoch,
        entry.last_sequence,
        entry.last_timestamp,
        entry.coordinator_epoch,
        entry.transaction_start,
    )
