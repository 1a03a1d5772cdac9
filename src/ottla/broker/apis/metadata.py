"""Metadata: brokers, topics, and the leaders of partitions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from ottla.broker.metadata.brokers import Brokers
from ottla.broker.network_server.call import Call
from ottla.broker.node import BrokerNode
from ottla.broker.security.authorization import lacks_permission, may_create
from ottla.coordination.cluster.topic import ClusterTopic, PartitionState
from ottla.errors import ErrorCode
from ottla.protocol.acl import CLUSTER_NAME, Operation, ResourceType
from ottla.protocol.messages.create_topics import CreatableTopicResult
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

IDS_SINCE = 12
"""From this version on topics are requested by ids; the two versions before have the field, without a meaning."""
CLUSTER_OPERATIONS = 8096
"""All operations on a cluster, as bits: the authorized ones if there is no authorizer."""
TOPIC_OPERATIONS = 3576
"""All operations on a topic, as bits."""


def handle(node: BrokerNode, call: Call, request: MetadataRequest) -> MetadataResponse:
    """Describe brokers and topics. Topics requested by name are created if that is allowed."""
    wants_all = request.topics is None or (call.version == 0 and not request.topics)
    topics = list_all_topics(node, call) if wants_all else list_requested_topics(node, call, request)
    brokers = list_brokers(node, call)
    return MetadataResponse(
        brokers=brokers,
        cluster_id=node.cluster_id,
        # Every broker forwards changes to the controller, and this one is known to be alive.
        controller_id=node.config.node_id,
        topics=[
            with_operations(node, call, topic) if request.include_topic_authorized_operations else topic
            for topic in map(hide_unavailable_leaders(alive_for(node.brokers, call)), topics)
        ],
        cluster_authorized_operations=(
            cluster_operations(node, call) if request.include_cluster_authorized_operations else NO_OPERATIONS
        ),
    )


def list_brokers(node: BrokerNode, call: Call) -> list[MetadataResponseBroker]:
    """Return the brokers that the client may connect to: those that are not fenced; see `Brokers.list_known`."""
    return [
        MetadataResponseBroker(each.node_id, *node.address_of(each, call.connection), each.rack)
        for each in node.brokers.list_known(
            call.connection.listener, call.connection.software[0], node.clock.monotonic()
        )
    ]


def alive_for(brokers: Brokers, call: Call) -> Collection[int]:
    """Return the ids of the unfenced brokers that the client can reach on its listener."""
    return brokers.list_alive(call.connection.listener).keys()


def hide_unavailable_leaders(alive: Collection[int]) -> Callable[[MetadataResponseTopic], MetadataResponseTopic]:
    """Return a function that marks replicas and leaders that are not alive in a topic."""

    def describe_topic(topic: MetadataResponseTopic) -> MetadataResponseTopic:
        for partition in topic.partitions:
            partition.offline_replicas = [each for each in partition.replica_nodes if each not in alive]
            if partition.leader_id not in alive:
                partition.error_code, partition.leader_id = ErrorCode.LEADER_NOT_AVAILABLE, -1
        return topic

    return describe_topic


def list_all_topics(node: BrokerNode, call: Call) -> Iterable[MetadataResponseTopic]:
    """Return all topics that the client may describe."""
    return map(describe_topic, list_visible_topics(node, call, node.topics.all()))


def list_visible_topics(node: BrokerNode, call: Call, topics: Iterable[ClusterTopic]) -> Iterable[ClusterTopic]:
    """Return the topics that the client may describe."""
    access = node.access
    if access is None:
        return topics
    return (topic for topic in topics if access.can_describe(call, ResourceType.TOPIC, topic.name))


def list_requested_topics(node: BrokerNode, call: Call, request: MetadataRequest) -> Iterable[MetadataResponseTopic]:
    """Yield each requested topic once."""
    wanted = {(topic.topic_id, topic.name): topic for topic in request.topics or ()}
    if call.version < IDS_SINCE and any(topic_id != ZERO_UUID or name is None for topic_id, name in wanted):
        return (
            MetadataResponseTopic(ErrorCode.INVALID_REQUEST, name=name or "", topic_id=topic_id)
            for topic_id, name in wanted
        )
    made = node.ensure_topics(
        [
            topic.name
            for topic in wanted.values()
            if topic.topic_id == ZERO_UUID and topic.name is not None and should_create(node, call, topic.name, request)
        ]
    )
    return (describe_requested(node, call, request, topic, made) for topic in wanted.values())


def should_create(node: BrokerNode, call: Call, name: str, request: MetadataRequest) -> bool:
    """Return True if a requested topic is missing, and the client may describe and create it."""
    return (
        request.allow_auto_topic_creation
        and node.config.auto_create_topics_enable
        and node.topics.find_by_name(name) is None
        and not node.topics.name_error(name)
        and not lacks_permission(node, call, Operation.DESCRIBE, ResourceType.TOPIC, name)
        and may_create(node, call, name)
    )


def describe_requested(
    node: BrokerNode,
    call: Call,
    request: MetadataRequest,
    wanted: MetadataRequestTopic,
    made: Mapping[str, ClusterTopic | CreatableTopicResult],
) -> MetadataResponseTopic:
    """Return one requested topic, by name or by id."""
    if wanted.topic_id != ZERO_UUID or wanted.name is None:
        topic = node.topics.with_id(wanted.topic_id)
        if topic is not None and lacks_permission(node, call, Operation.DESCRIBE, ResourceType.TOPIC, topic.name):
            # The client knows the id already; the name would be new to it.
            return MetadataResponseTopic(ErrorCode.TOPIC_AUTHORIZATION_FAILED, name=None, topic_id=wanted.topic_id)
        if topic is not None:
            return describe_topic(topic)
        return MetadataResponseTopic(ErrorCode.UNKNOWN_TOPIC_ID, name=None, topic_id=wanted.topic_id)
    if lacks_permission(node, call, Operation.DESCRIBE, ResourceType.TOPIC, wanted.name):
        return MetadataResponseTopic(ErrorCode.TOPIC_AUTHORIZATION_FAILED, name=wanted.name)
    topic = node.topics.find_by_name(wanted.name)
    if topic is not None:
        return describe_topic(topic)
    return describe_missing(node, call, wanted.name, made.get(wanted.name), create=request.allow_auto_topic_creation)


def describe_missing(
    node: BrokerNode, call: Call, name: str, made: ClusterTopic | CreatableTopicResult | None, *, create: bool
) -> MetadataResponseTopic:
    """Return a topic that does not exist and was not created; in a cluster the controllers create it, and the client retries."""
    error = node.topics.name_error(name)
    if error:
        return MetadataResponseTopic(error, name=name)
    if not (create and node.config.auto_create_topics_enable):
        return MetadataResponseTopic(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, name=name)
    if made is None:
        return MetadataResponseTopic(ErrorCode.TOPIC_AUTHORIZATION_FAILED, name=name)
    return MetadataResponseTopic(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, name=name)


def describe_topic(topic: ClusterTopic) -> MetadataResponseTopic:
    """Return the description of a topic."""
    return MetadataResponseTopic(
        **list_topic_fields(topic),
        partitions=[MetadataResponsePartition(**list_partition_fields(state)) for state in topic.partitions],
    )


def list_topic_fields(topic: ClusterTopic) -> dict[str, Any]:
    """Return the fields that all descriptions of a topic have."""
    return {"name": topic.name, "topic_id": topic.topic_id, "is_internal": topic.is_internal}


def list_partition_fields(state: PartitionState) -> dict[str, Any]:
    """Return the fields that all descriptions of a partition have."""
    return {
        "partition_index": state.index,
        "leader_id": state.leader,
        "leader_epoch": state.leader_epoch,
        "replica_nodes": state.replicas,
        "isr_nodes": state.isr,
    }


def with_operations(node: BrokerNode, call: Call, topic: MetadataResponseTopic) -> MetadataResponseTopic:
    """Return the same topic with the operations that the client is authorized for."""
    if topic.error_code != ErrorCode.TOPIC_AUTHORIZATION_FAILED:
        topic.topic_authorized_operations = topic_operations(node, call, topic.name or "")
    return topic


def topic_operations(node: BrokerNode, call: Call, name: str) -> int:
    """Return the operations that the client is authorized for on a topic, as bits."""
    return TOPIC_OPERATIONS if node.access is None else node.access.list_operations(call, ResourceType.TOPIC, name)


def cluster_operations(node: BrokerNode, call: Call) -> int:
    """Return the operations that the client is authorized for on the cluster, as bits; none if it may not describe the cluster."""
    access = node.access
    if access is None:
        return CLUSTER_OPERATIONS
    if not access.can_describe(call, ResourceType.CLUSTER, CLUSTER_NAME):
        return 0
    return access.list_operations(call, ResourceType.CLUSTER, CLUSTER_NAME)
