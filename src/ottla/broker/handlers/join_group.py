"""JoinGroup: become a member, or come back as one. The answer waits until the join of all members ends."""

from __future__ import annotations

import uuid
from typing import Any

from ottla.broker.group_calls import ask
from ottla.broker.node import BrokerNode
from ottla.broker.requests.call import Call, Outcome
from ottla.coordination.groups.classic.responses import join_error_response
from ottla.coordination.groups.events import JoinRequested
from ottla.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from ottla.protocol.schema import Message, replace

NULL_SINCE = 7
"""From this version on there may be no protocol; before, its name is empty."""


def handle(node: BrokerNode, call: Call, request: JoinGroupRequest) -> Message | Outcome:
    """Welcome to a generation, or why not."""

    def event(ticket: int) -> JoinRequested:
        client_id = call.header.client_id or ""
        fresh_id = f"{request.group_instance_id or client_id}-{uuid.uuid4()}"
        host = f"/{call.connection.peer[0]}"
        return JoinRequested(ticket, request, call.version, fresh_id, client_id, host, node.clock.wall_ms())

    def response(reply: Any) -> JoinGroupResponse:
        answer = reply if isinstance(reply, JoinGroupResponse) else join_error_response(reply, request.member_id)
        if call.version < NULL_SINCE and answer.protocol_name is None:
            return replace(answer, protocol_name="")
        return answer

    return ask(node, call, request.group_id, event, response)
