"""ConsumerGroupHeartbeat: join, renew and leave a group with assignments by the coordinator (KIP-848)."""

from __future__ import annotations

import uuid
from typing import Any

from ottla.broker.apis.group_calls import submit_to_group
from ottla.broker.network_server.call import Call, Outcome
from ottla.broker.node import BrokerNode
from ottla.broker.security.authorization import lacks_permission
from ottla.coordination.cluster.features import GROUP_VERSION
from ottla.coordination.groups.consumer.events import ConsumerHeartbeat, Sees
from ottla.errors import ErrorCode
from ottla.protocol.acl import Operation, ResourceType
from ottla.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from ottla.protocol.schema import Message


def handle(node: BrokerNode, call: Call, request: ConsumerGroupHeartbeatRequest) -> Message | Outcome:
    """Return the member's epoch and, if it has changed, its assignment."""
    if not node.features.finalized.get(GROUP_VERSION):
        return build_error(ErrorCode.UNSUPPORTED_VERSION, f"The cluster does not have the feature {GROUP_VERSION}.")
    if not request.group_id:
        return build_error(ErrorCode.INVALID_REQUEST, "GroupId can't be empty.")

    for name in request.subscribed_topic_names or ():
        if lacks_permission(node, call, Operation.DESCRIBE, ResourceType.TOPIC, name):
            return build_error(ErrorCode.TOPIC_AUTHORIZATION_FAILED, f"DESCRIBE is not allowed on topic {name!r}")

    def event(ticket: int) -> ConsumerHeartbeat:
        host = f"/{call.connection.peer[0]}"
        client_id, wall_ms = call.header.client_id or "", node.clock.wall_ms()
        sees = seen_by(node, call)
        return ConsumerHeartbeat(ticket, request, call.version, str(uuid.uuid4()), client_id, host, wall_ms, sees)

    def response(reply: Any) -> ConsumerGroupHeartbeatResponse:
        return reply if isinstance(reply, ConsumerGroupHeartbeatResponse) else build_error(reply, None)

    return submit_to_group(node, call, request.group_id, event, response)


def seen_by(node: BrokerNode, call: Call) -> Sees | None:
    """Return a predicate for the topics that the client may see without naming them; None for all."""
    access = node.access
    return None if access is None else lambda name: access.can_describe(call, ResourceType.TOPIC, name)


def build_error(code: int, text: str | None) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(error_code=code, error_message=text)
