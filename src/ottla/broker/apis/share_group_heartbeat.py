"""ShareGroupHeartbeat: join, stay in and leave a share group (KIP-932)."""

from __future__ import annotations

from typing import Any

from ottla.broker.apis.group_calls import submit_to_group
from ottla.broker.apis.share_state_calls import has_share_groups
from ottla.broker.network_server.call import Call, Outcome
from ottla.broker.node import BrokerNode
from ottla.broker.security.authorization import lacks_permission
from ottla.coordination.groups.share.events import ShareHeartbeat
from ottla.errors import ErrorCode
from ottla.protocol.acl import Operation, ResourceType
from ottla.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse
from ottla.protocol.schema import Message


def handle(node: BrokerNode, call: Call, request: ShareGroupHeartbeatRequest) -> Message | Outcome:
    """Return the member's epoch and, if it has changed, its assignment."""
    if not has_share_groups(node):
        return refused(ErrorCode.UNSUPPORTED_VERSION, "share groups are off: raise the feature share.version")
    if not request.group_id:
        return refused(ErrorCode.INVALID_REQUEST, "the group id is empty")
    for name in request.subscribed_topic_names or ():
        if lacks_permission(node, call, Operation.DESCRIBE, ResourceType.TOPIC, name):
            return refused(ErrorCode.TOPIC_AUTHORIZATION_FAILED, f"DESCRIBE is not allowed on topic {name!r}")

    def event(ticket: int) -> ShareHeartbeat:
        host = f"/{call.connection.peer[0]}"
        return ShareHeartbeat(ticket, request, call.header.client_id or "", host, node.clock.wall_ms())

    def response(reply: Any) -> ShareGroupHeartbeatResponse:
        return reply if isinstance(reply, ShareGroupHeartbeatResponse) else refused(reply, None)

    return submit_to_group(node, call, request.group_id, event, response, submit=node.groups.submit_share_heartbeat)


def refused(code: int, text: str | None) -> ShareGroupHeartbeatResponse:
    return ShareGroupHeartbeatResponse(error_code=code, error_message=text)
