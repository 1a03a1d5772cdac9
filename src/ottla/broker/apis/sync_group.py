"""SyncGroup: return the member's assignment, once the leader has sent the assignments."""

from __future__ import annotations

from typing import Any

from ottla.broker.apis.group_calls import submit_to_group
from ottla.broker.network_server.call import Call, Outcome
from ottla.broker.node import BrokerNode
from ottla.coordination.groups.classic.responses import sync_error_response
from ottla.coordination.groups.events import SyncRequested
from ottla.errors import ErrorCode
from ottla.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from ottla.protocol.schema import Message

PROTOCOL_SINCE = 5
"""From this version on a member sends the protocol that it expects (KIP-559)."""


def handle(node: BrokerNode, call: Call, request: SyncGroupRequest) -> Message | Outcome:
    """Return the member's assignment, or an error."""

    def response(reply: Any) -> SyncGroupResponse:
        return reply if isinstance(reply, SyncGroupResponse) else sync_error_response(reply)

    if call.version >= PROTOCOL_SINCE and None in (request.protocol_type, request.protocol_name):
        return sync_error_response(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    return submit_to_group(
        node, call, request.group_id, lambda ticket: SyncRequested(ticket, request, node.clock.wall_ms()), response
    )
