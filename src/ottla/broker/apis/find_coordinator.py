"""FindCoordinator: the broker that coordinates a group, a transactional id or a partition of a share group: the leader of the key's partition.

The topic with these partitions is created if it is missing, as in Kafka: clients and their tests wait for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.broker.metadata.internal_topics import CONSUMER_OFFSETS, SHARE_GROUP_STATE, TRANSACTION_STATE
from ottla.broker.metadata.topics import find_leader_of_key
from ottla.broker.network_server.call import Call
from ottla.broker.node import BrokerNode
from ottla.broker.security.authorization import lacks_permission
from ottla.errors import ErrorCode
from ottla.protocol.acl import CLUSTER_NAME, Operation, ResourceType
from ottla.protocol.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse

if TYPE_CHECKING:
    from ottla.broker.coordinators.group_coordinator import GroupCoordinator
    from ottla.broker.coordinators.share_coordinator import ShareCoordinator
    from ottla.broker.coordinators.transaction_coordinator import TransactionCoordinator

KEPT_IN = {0: CONSUMER_OFFSETS, 1: TRANSACTION_STATE, 2: SHARE_GROUP_STATE}
"""The topic for each type of key: groups, transactional ids, partitions of share groups."""
SHARE = 2
SHARE_SINCE = 6
"""From this version on there are keys of partitions of share groups."""
GUARDED = {
    0: (ResourceType.GROUP, ErrorCode.GROUP_AUTHORIZATION_FAILED),
    1: (ResourceType.TRANSACTIONAL_ID, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
}
"""For each type of key the resource type for authorization, and the error code of a denial."""
MANY_SINCE = 4
"""From this version on a request has several keys."""


def handle(node: BrokerNode, call: Call, request: FindCoordinatorRequest) -> FindCoordinatorResponse:
    """Name the coordinator of each key."""
    if call.version >= MANY_SINCE:
        return FindCoordinatorResponse(
            coordinators=[find_coordinator(node, call, request.key_type, key) for key in request.coordinator_keys]
        )
    found = find_coordinator(node, call, request.key_type, request.key)
    return FindCoordinatorResponse(
        error_code=found.error_code,
        error_message=found.error_message,
        node_id=found.node_id,
        host=found.host,
        port=found.port,
    )


def find_coordinator(node: BrokerNode, call: Call, key_type: int, key: str) -> Coordinator:
    topic = KEPT_IN.get(key_type)
    if topic is None:
        return Coordinator(key, -1, "", -1, ErrorCode.INVALID_REQUEST, f"no coordinator keeps keys of type {key_type}")
    refusal = share_refusal(node, call, key) if key_type == SHARE else denial(node, call, key_type, key)
    if refusal is not None:
        return refusal
    if node.topics.find_by_name(topic) is None:
        node.request_topics([node.topics.complete_creation(topic)])
    alive, made = node.brokers.list_alive(call.connection.listener), node.topics.find_by_name(topic)
    broker = alive.get(find_leader_of_key(made, key))
    if broker is None:
        why = f"{topic} cannot be created yet" if made is None else "its partition has no leader yet"
        return Coordinator(key, -1, "", -1, ErrorCode.COORDINATOR_NOT_AVAILABLE, why)
    if broker.node_id == node.config.node_id:
        fault = coordinator_of(node, topic).find_fault(key)
        if fault is not None:
            return Coordinator(key, -1, "", -1, fault.code, fault.message)
    return Coordinator(key, broker.node_id, *node.address_of(broker, call.connection))


def denial(node: BrokerNode, call: Call, key_type: int, key: str) -> Coordinator | None:
    """Return the error if the client may not describe a group or transactional id; None if it may."""
    kind, code = GUARDED[key_type]
    if not lacks_permission(node, call, Operation.DESCRIBE, kind, key):
        return None
    return Coordinator(
        key, -1, "", -1, code, f"DESCRIBE is not allowed on {kind.name.lower().replace('_', ' ')} {key!r}"
    )


def share_refusal(node: BrokerNode, call: Call, key: str) -> Coordinator | None:
    """Return the error for the key of a partition of a share group; None if there is none. Only brokers use such keys."""
    from ottla.broker.coordinators.share_coordinator import is_coordinator_key  # loaded at the first request

    if call.version < SHARE_SINCE:
        text = f"keys of type {SHARE} exist since version {SHARE_SINCE}"
        return Coordinator(key, -1, "", -1, ErrorCode.INVALID_REQUEST, text)
    if lacks_permission(node, call, Operation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME):
        text = "CLUSTER_ACTION is not allowed"
        return Coordinator(key, -1, "", -1, ErrorCode.CLUSTER_AUTHORIZATION_FAILED, text)
    if not is_coordinator_key(key):
        text = f"expected a group, a topic id and a partition, with colons between, got {key!r}"
        return Coordinator(key, -1, "", -1, ErrorCode.INVALID_REQUEST, text)
    return None


def coordinator_of(node: BrokerNode, topic: str) -> GroupCoordinator | TransactionCoordinator | ShareCoordinator:
    """Return this broker's coordinator with its state in a topic."""
    if topic == CONSUMER_OFFSETS:
        return node.groups
    return node.transactions if topic == TRANSACTION_STATE else node.share_coordinator
