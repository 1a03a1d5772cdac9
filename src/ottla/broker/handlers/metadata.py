"""Metadata: the broker's address, the topics, and who leads their partitions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from ottla.broker.access import denied, may_create
from ottla.broker.cluster.brokers import Brokers
from ottla.broker.node import BrokerNode
from ottla.broker.requests.call import Call
from ottla.coordination.cluster.topic import PartitionState, Topic
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
"""From this version on topics are asked for by their ids; the two before have a place for them, and mean nothing by it."""
CLUSTER_OPERATIONS = 8096
"""Everything that can be allowed on a cluster, a bit for each: what is told where there is no authorizer."""
TOPIC_OPERATIONS = 3576
"""Everything that can be allowed on a topic."""


def handle(node: BrokerNode, call: Call, request: MetadataRequest) -> MetadataResponse:
    """Topics asked for by name are made where that is allowed."""
    wants_all = request.topics is None or (call.version == 0 and not request.topics)
    topics = every(node, call) if wants_all else those_asked(node, call, request)
    brokers = brokers_of(node, call)
    return MetadataResponse(
        brokers=brokers,
        cluster_id=node.cluster_id,
        # Who is asked to change something hands it on; any broker will do, and this one is known to be there.
        controller_id=node.config.node_id,
        topics=[
            with_operations(node, call, topic) if request.include_topic_authorized_operations else topic
            for topic in (topics if node.brokers is None else map(reachable(alive_for(node.brokers, call)), topics))
        ],
        cluster_authorized_operations=(
            cluster_operations(node, call) if request.include_cluster_authorized_operations else NO_OPERATIONS
        ),
    )


def brokers_of(node: BrokerNode, call: Call) -> list[MetadataResponseBroker]:
    """The brokers that the client may go to: this one, or those of the cluster that are not fenced; see `Brokers.listed`."""
    if node.brokers is None:
        return [MetadataResponseBroker(node.config.node_id, *node.address_for(call.connection))]
    return [
        MetadataResponseBroker(each.node_id, each.host, each.port, each.rack)
        for each in node.brokers.listed(call.connection.listener, call.connection.software[0], node.clock.monotonic())
    ]


def alive_for(brokers: Brokers, call: Call) -> Collection[int]:
    """Return the numbers of the brokers that can lead partitions and have replicas, as far as the client can reach them."""
    return brokers.alive(call.connection.listener).keys()


def reachable(alive: Collection[int]) -> Callable[[MetadataResponseTopic], MetadataResponseTopic]:
    """Topics with what is said of replicas, and leaders, that are not there."""

    def told(topic: MetadataResponseTopic) -> MetadataResponseTopic:
        for partition in topic.partitions:
            partition.offline_replicas = [each for each in partition.replica_nodes if each not in alive]
            if partition.leader_id not in alive:
                partition.error_code, partition.leader_id = ErrorCode.LEADER_NOT_AVAILABLE, -1
        return topic

    return told


def every(node: BrokerNode, call: Call) -> Iterable[MetadataResponseTopic]:
    """All topics that the client may know of."""
    return map(described, seen(node, call, node.topics.all()))


def seen(node: BrokerNode, call: Call, topics: Iterable[Topic]) -> Iterable[Topic]:
    """Those of which the client may know."""
    access = node.access
    if access is None:
        return topics
    return (topic for topic in topics if access.sees(call, ResourceType.TOPIC, topic.name))


def those_asked(node: BrokerNode, call: Call, request: MetadataRequest) -> Iterable[MetadataResponseTopic]:
    """Each topic that is asked for, once."""
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
            if topic.topic_id == ZERO_UUID and topic.name is not None and is_to_be_made(node, call, topic.name, request)
        ]
    )
    return (asked(node, call, request, topic, made) for topic in wanted.values())


def is_to_be_made(node: BrokerNode, call: Call, name: str, request: MetadataRequest) -> bool:
    """True if a topic is missing, and a client that may know of it may also have it made by naming it."""
    return (
        request.allow_auto_topic_creation
        and node.config.auto_create_topics_enable
        and node.topics.named(name) is None
        and not node.topics.name_error(name)
        and not denied(node, call, Operation.DESCRIBE, ResourceType.TOPIC, name)
        and may_create(node, call, name)
    )


def asked(
    node: BrokerNode,
    call: Call,
    request: MetadataRequest,
    wanted: MetadataRequestTopic,
    made: Mapping[str, Topic | CreatableTopicResult],
) -> MetadataResponseTopic:
    """One topic, by name or by id."""
    if wanted.topic_id != ZERO_UUID or wanted.name is None:
        topic = node.topics.with_id(wanted.topic_id)
        if topic is not None and denied(node, call, Operation.DESCRIBE, ResourceType.TOPIC, topic.name):
            # The id is what the client knows already, the name is not.
            return MetadataResponseTopic(ErrorCode.TOPIC_AUTHORIZATION_FAILED, name=None, topic_id=wanted.topic_id)
        if topic is not None:
            return described(topic)
        return MetadataResponseTopic(ErrorCode.UNKNOWN_TOPIC_ID, name=None, topic_id=wanted.topic_id)
    if denied(node, call, Operation.DESCRIBE, ResourceType.TOPIC, wanted.name):
        return MetadataResponseTopic(ErrorCode.TOPIC_AUTHORIZATION_FAILED, name=wanted.name)
    topic = node.topics.named(wanted.name)
    if topic is not None:
        return described(topic)
    return absent(node, call, wanted.name, made.get(wanted.name), create=request.allow_auto_topic_creation)


def absent(
    node: BrokerNode, call: Call, name: str, made: Topic | CreatableTopicResult | None, *, create: bool
) -> MetadataResponseTopic:
    """A topic that is not there, and could not be made; in a cluster the controllers make it, and the client asks again."""
    error = node.topics.name_error(name)
    if error:
        return MetadataResponseTopic(error, name=name)
    if not (create and node.config.auto_create_topics_enable):
        return MetadataResponseTopic(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, name=name)
    if made is None:
        return MetadataResponseTopic(ErrorCode.TOPIC_AUTHORIZATION_FAILED, name=name)
    if node.brokers is not None or isinstance(made, Topic):
        return MetadataResponseTopic(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, name=name)
    return MetadataResponseTopic(made.error_code, name=name)


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


def with_operations(node: BrokerNode, call: Call, topic: MetadataResponseTopic) -> MetadataResponseTopic:
    """The same, with what the client may do to it, also where it is not there."""
    if topic.error_code != ErrorCode.TOPIC_AUTHORIZATION_FAILED:
        topic.topic_authorized_operations = topic_operations(node, call, topic.name or "")
    return topic


def topic_operations(node: BrokerNode, call: Call, name: str) -> int:
    """What the client may do to a topic, a bit for each."""
    return TOPIC_OPERATIONS if node.access is None else node.access.operations(call, ResourceType.TOPIC, name)


def cluster_operations(node: BrokerNode, call: Call) -> int:
    """What the client may do to the cluster, a bit for each; nothing where it may not even ask."""
    access = node.access
    if access is None:
        return CLUSTER_OPERATIONS
    if not access.sees(call, ResourceType.CLUSTER, CLUSTER_NAME):
        return 0
    return access.operations(call, ResourceType.CLUSTER, CLUSTER_NAME)
