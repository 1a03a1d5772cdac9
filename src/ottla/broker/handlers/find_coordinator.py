"""FindCoordinator: which broker keeps a group, or a transactional id; with one broker, this one.

The topic in which it keeps them is there from then on, as with Kafka: clients and their tests wait for it.
"""

from __future__ import annotations

from collections.abc import Mapping

from ottla.broker.access import denied
from ottla.broker.cluster.brokers import KnownBroker
from ottla.broker.cluster.own_topics import CONSUMER_OFFSETS, TRANSACTION_STATE
from ottla.broker.cluster.topics import leader_of_key
from ottla.broker.node import BrokerNode
from ottla.broker.requests.call import Call
from ottla.coordination.cluster.topic import Topic
from ottla.errors import ErrorCode
from ottla.protocol.acl import Operation, ResourceType
from ottla.protocol.messages.create_topics import CreatableTopicResult
from ottla.protocol.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse

KEPT_IN = {0: CONSUMER_OFFSETS, 1: TRANSACTION_STATE}
"""The topic for each type of key: groups, transactional ids."""
GUARDED = {
    0: (ResourceType.GROUP, ErrorCode.GROUP_AUTHORIZATION_FAILED),
    1: (ResourceType.TRANSACTIONAL_ID, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
}
"""What each type of key names, and what is said to who may not know of it."""
MANY_SINCE = 4
"""From this version on many keys are asked for at once."""


def handle(node: BrokerNode, call: Call, request: FindCoordinatorRequest) -> FindCoordinatorResponse:
    """Name this broker, for each key."""
    if call.version >= MANY_SINCE:
        return FindCoordinatorResponse(
            coordinators=[coordinator(node, call, request.key_type, key) for key in request.coordinator_keys]
        )
    found = coordinator(node, call, request.key_type, request.key)
    return FindCoordinatorResponse(
        error_code=found.error_code,
        error_message=found.error_message,
        node_id=found.node_id,
        host=found.host,
        port=found.port,
    )


def coordinator(node: BrokerNode, call: Call, key_type: int, key: str) -> Coordinator:
    topic = KEPT_IN.get(key_type)
    if topic is None:
        return Coordinator(key, -1, "", -1, ErrorCode.INVALID_REQUEST, f"no coordinator keeps keys of type {key_type}")
    kind, code = GUARDED[key_type]
    if denied(node, call, Operation.DESCRIBE, kind, key):
        return Coordinator(
            key, -1, "", -1, code, f"DESCRIBE is not allowed on {kind.name.lower().replace('_', ' ')} {key!r}"
        )
    if node.brokers is not None:
        if node.topics.named(topic) is None:
            node.make_topics([node.topics.of_the_cluster(topic)])
        return elsewhere(node.brokers.alive(call.connection.listener), node.topics.named(topic), key)
    made = node.topics.ensure(topic)
    if isinstance(made, CreatableTopicResult):
        message = f"{topic} cannot be made: {made.error_message}"
        damaged = made.error_code == ErrorCode.UNKNOWN_SERVER_ERROR  # which is for a person
        why = made.error_code if damaged else ErrorCode.COORDINATOR_NOT_AVAILABLE
        return Coordinator(key, -1, "", -1, why, message)
    fault = (node.groups if topic == CONSUMER_OFFSETS else node.transactions).fault_of(key)
    if fault is not None:
        return Coordinator(key, -1, "", -1, fault.code, fault.message)
    host, port = node.address_for(call.connection)
    return Coordinator(key, node.config.node_id, host, port)


def elsewhere(alive: Mapping[int, KnownBroker], topic: Topic | None, key: str) -> Coordinator:
    """The broker that leads the partition in which the key is kept."""
    broker = alive.get(leader_of_key(topic, key))
    if broker is None:
        return Coordinator(key, -1, "", -1, ErrorCode.COORDINATOR_NOT_AVAILABLE, "nobody leads its partition yet")
    return Coordinator(key, broker.node_id, broker.host, broker.port)
