"""Metadata: the broker's address, the topics, and who leads their partitions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ottla.broker.node import BrokerNode
from ottla.broker.requests.call import Call
from ottla.coordination.cluster.topic import PartitionState, Topic
from ottla.errors import ErrorCode
from ottla.protocol.messages.metadata import (
    NO_OPERATIONS,
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from ottla.protocol.schema import ZERO_UUID

NULL_NAME_SINCE = 12
"""From this version on a topic nobody knows may have no name."""
CLUSTER_OPERATIONS = 8096
"""Everything that can be allowed on a cluster, a bit for each; there is no access control yet."""
TOPIC_OPERATIONS = 3576
"""Everything that can be allowed on a topic."""


def handle(node: BrokerNode, call: Call, request: MetadataRequest) -> MetadataResponse:
    """Topics asked for by name are made where that is allowed."""
    host, port = node.address_for(call.connection)
    wants_all = request.topics is None or (call.version == 0 and not request.topics)
    topics = every(node) if wants_all else (asked(node, call, request, topic) for topic in request.topics or ())
    operations = TOPIC_OPERATIONS if request.include_topic_authorized_operations else NO_OPERATIONS
    return MetadataResponse(
        brokers=[MetadataResponseBroker(node.config.node_id, host, port)],
        cluster_id=node.cluster_id,
        controller_id=node.config.node_id,
        topics=[with_operations(topic, operations) for topic in topics],
        cluster_authorized_operations=(
            CLUSTER_OPERATIONS if request.include_cluster_authorized_operations else NO_OPERATIONS
        ),
    )


def every(node: BrokerNode) -> Iterable[MetadataResponseTopic]:
    return map(described, node.topics.all())


def asked(
    node: BrokerNode, call: Call, request: MetadataRequest, wanted: MetadataRequestTopic
) -> MetadataResponseTopic:
    """One topic, by name or by id."""
    if wanted.topic_id != ZERO_UUID or wanted.name is None:
        topic = node.topics.with_id(wanted.topic_id)
        nameless = None if call.version >= NULL_NAME_SINCE else ""
        if topic is not None:
            return described(topic)
        return MetadataResponseTopic(ErrorCode.UNKNOWN_TOPIC_ID, name=nameless, topic_id=wanted.topic_id)
    topic = node.topics.named(wanted.name)
    if topic is not None:
        return described(topic)
    return absent(node, wanted.name, create=request.allow_auto_topic_creation)


def absent(node: BrokerNode, name: str, *, create: bool) -> MetadataResponseTopic:
    """A topic that is not there: made now, or why it cannot be."""
    error = node.topics.name_error(name)
    if error:
        return MetadataResponseTopic(error, name=name)
    if not (create and node.config.auto_create_topics_enable):
        return MetadataResponseTopic(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, name=name)
    made = node.topics.ensure(name)
    return described(made) if isinstance(made, Topic) else MetadataResponseTopic(made.error_code, name=name)


def described(topic: Topic) -> MetadataResponseTopic:
    """What clients are told of a topic."""
    return MetadataResponseTopic(
        **facts_of(topic), partitions=[MetadataResponsePartition(**place_of(state)) for state in topic.partitions]
    )


def facts_of(topic: Topic) -> dict[str, Any]:
    """What every description of a topic begins with."""
    return {"name": topic.name, "topic_id": topic.topic_id, "is_internal": topic.internal}


def place_of(state: PartitionState) -> dict[str, Any]:
    """Where a partition is, as every description of it says."""
    return {
        "partition_index": state.index,
        "leader_id": state.leader,
        "leader_epoch": state.leader_epoch,
        "replica_nodes": state.replicas,
        "isr_nodes": state.isr,
    }


def with_operations(topic: MetadataResponseTopic, operations: int) -> MetadataResponseTopic:
    """The same, with what the client may do to it where it asked for that."""
    if not topic.error_code:
        topic.topic_authorized_operations = operations
    return topic
