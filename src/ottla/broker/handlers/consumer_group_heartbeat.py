"""ConsumerGroupHeartbeat: join, stay in and leave a group whose coordinator assigns the partitions (KIP-848)."""

from __future__ import annotations

import uuid
from typing import Any

from ottla.broker.access import denied
from ottla.broker.group_calls import ask
from ottla.broker.node import BrokerNode
from ottla.broker.requests.call import Call, Outcome
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
    """A member's epoch and, where they have changed, its partitions."""
    if not node.features.finalized.get(GROUP_VERSION):
        return refused(ErrorCode.UNSUPPORTED_VERSION, f"The cluster does not have the feature {GROUP_VERSION}.")
    if not request.group_id:
        return refused(ErrorCode.INVALID_REQUEST, "GroupId can't be empty.")

    for name in request.subscribed_topic_names or ():
        if denied(node, call, Operation.DESCRIBE, ResourceType.TOPIC, name):
            return refused(ErrorCode.TOPIC_AUTHORIZATION_FAILED, f"DESCRIBE is not allowed on topic {name!r}")

    def event(ticket: int) -> ConsumerHeartbeat:
        host = f"/{call.connection.peer[0]}"
        client_id, wall_ms = call.header.client_id or "", node.clock.wall_ms()
        sees = seen_by(node, call)
        return ConsumerHeartbeat(ticket, request, call.version, str(uuid.uuid4()), client_id, host, wall_ms, sees)

    def response(reply: Any) -> ConsumerGroupHeartbeatResponse:
        return reply if isinstance(reply, ConsumerGroupHeartbeatResponse) else refused(reply, None)

    return ask(node, call, request.group_id, event, response)


def seen_by(node: BrokerNode, call: Call) -> Sees | None:
    """Which topics a client may know of that it has not named."""
    access = node.access
    return None if access is None else lambda name: access.sees(call, ResourceType.TOPIC, name)


def refused(code: int, text: str | None) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(error_code=code, error_message=text)
