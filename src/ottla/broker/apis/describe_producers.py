"""DescribeProducers: the producers of partitions, with their open transactions."""

from __future__ import annotations

from ottla.broker.network_server.call import Call
from ottla.broker.node import BrokerNode
from ottla.broker.security.authorization import lacks_permission
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
    """Return the producer state that each partition keeps."""
    return DescribeProducersResponse(
        topics=[
            TopicResponse(name, [describe_partition(node, call, name, index) for index in indexes])
            for name, indexes in list_partitions(request).items()
        ]
    )


def list_partitions(request: DescribeProducersRequest) -> dict[str, dict[int, None]]:
    """Return the partitions by topic, in the order of the request and without duplicates."""
    partitions: dict[str, dict[int, None]] = {}
    for topic in request.topics:
        partitions.setdefault(topic.name, {}).update(dict.fromkeys(topic.partition_indexes))
    return partitions


def describe_partition(node: BrokerNode, call: Call, topic: str, index: int) -> PartitionResponse:
    if lacks_permission(node, call, Operation.READ, ResourceType.TOPIC, topic):
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
    return PartitionResponse(index, active_producers=[build_state(entry) for entry in entries])


def build_state(entry: ProducerEntry) -> ProducerState:
    return ProducerState(
        entry.producer_id,
        entry.epoch,
        entry.last_sequence,
        entry.last_timestamp,
        entry.coordinator_epoch,
        entry.transaction_start,
    )
