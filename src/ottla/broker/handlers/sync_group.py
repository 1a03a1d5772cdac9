"""SyncGroup: what the leader gave to whom. The answer waits until the leader has brought it."""

from __future__ import annotations

from typing import Any

from ottla.broker.group_calls import ask
from ottla.broker.node import BrokerNode
from ottla.broker.requests.call import Call, Outcome
from ottla.coordination.groups.classic.responses import sync_error_response
from ottla.coordination.groups.events import SyncRequested
from ottla.errors import ErrorCode
from ottla.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from ottla.protocol.schema import Message

PROTOCOL_SINCE = 5
"""From this version on a member says by which protocol it believes to be assigned (KIP-559)."""


def handle(node: BrokerNode, call: Call, request: SyncGroupRequest) -> Message | Outcome:
    """A member's assignment, or why it gets none."""

    def response(reply: Any) -> SyncGroupResponse:
        return reply if isinstance(reply, SyncGroupResponse) else sync_error_response(reply)

    if call.version >= PROTOCOL_SINCE and None in (request.protocol_type, request.protocol_name):
        return sync_error_response(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    return ask(
        node, call, request.group_id, lambda ticket: SyncRequested(ticket, request, node.clock.wall_ms()), response
    )
