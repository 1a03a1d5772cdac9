"""JoinGroup: join or rejoin a group. The response waits until the rebalance has all members."""

from __future__ import annotations

import uuid
from typing import Any

from ottla.broker.apis.group_calls import submit_to_group
from ottla.broker.network_server.call import Call, Outcome
from ottla.broker.node import BrokerNode
from ottla.coordination.groups.classic.responses import join_error_response
from ottla.coordination.groups.events import JoinRequested
from ottla.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from ottla.protocol.schema import Message, replace

NULL_SINCE = 7
"""From this version on the protocol may be null; before, its name is empty."""


def handle(node: BrokerNode, call: Call, request: JoinGroupRequest) -> Message | Outcome:
    """Return the new generation and this member's id in it, or an error."""

    def event(ticket: int) -> JoinRequested:
        client_id = call.header.client_id or ""
        new_member_id = f"{request.group_instance_id or client_id}-{uuid.uuid4()}"
        host = f"/{call.connection.peer[0]}"
        return JoinRequested(ticket, request, call.version, new_member_id, client_id, host, node.clock.wall_ms())

    def response(reply: Any) -> JoinGroupResponse:
        answer = reply if isinstance(reply, JoinGroupResponse) else join_error_response(reply, request.member_id)
        if call.version < NULL_SINCE and answer.protocol_name is None:
            return replace(answer, protocol_name="")
        return answer

    return submit_to_group(node, call, request.group_id, event, response)
