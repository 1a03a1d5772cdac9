"""FindCoordinator: which broker keeps a group, or a transactional id; with one broker, this one."""

from __future__ import annotations

from ottla.broker.call import Call
from ottla.broker.node import Node
from ottla.errors import ErrorCode
from ottla.protocol.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse

GROUP, TRANSACTION = 0, 1
MANY_SINCE = 4
"""From this version on many keys are asked for at once."""


def handle(node: Node, call: Call, request: FindCoordinatorRequest) -> FindCoordinatorResponse:
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


def coordinator(node: Node, call: Call, key_type: int, key: str) -> Coordinator:
    """Who keeps this key."""
    if key_type in (GROUP, TRANSACTION):
        host, port = node.address_for(call.connection)
        return Coordinator(key, node.config.node_id, host, port)
    return Coordinator(key, -1, "", -1, ErrorCode.INVALID_REQUEST, f"no coordinator keeps keys of type {key_type}")
