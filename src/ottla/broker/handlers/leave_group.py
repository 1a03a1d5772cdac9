"""LeaveGroup: members go, and their partitions to the others at once."""

from __future__ import annotations

from typing import Any

from ottla.broker.group_calls import ask
from ottla.broker.node import BrokerNode
from ottla.broker.requests.call import Call, Outcome
from ottla.coordination.groups.events import LeaveRequested
from ottla.errors import ErrorCode
from ottla.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity, MemberResponse
from ottla.protocol.schema import Message

MANY_SINCE = 3
"""From this version on many members go at once."""


def handle(node: BrokerNode, call: Call, request: LeaveGroupRequest) -> Message | Outcome:
    """An error for each member, or one for all."""
    members = request.members if call.version >= MANY_SINCE else [MemberIdentity(request.member_id)]

    def response(reply: Any) -> LeaveGroupResponse:
        if reply == ErrorCode.UNKNOWN_MEMBER_ID and call.version >= MANY_SINCE:
            # A group that nobody knows has none of them; what would be told of all is what makes a client ask again.
            reply = [reply] * len(members)
        if isinstance(reply, int):
            return LeaveGroupResponse(error_code=reply)
        if call.version < MANY_SINCE:
            return LeaveGroupResponse(error_code=reply[0])
        pairs = zip(members, reply, strict=True)
        left = [MemberResponse(member.member_id, member.group_instance_id, code) for member, code in pairs]
        return LeaveGroupResponse(members=left)

    def event(ticket: int) -> LeaveRequested:
        return LeaveRequested(ticket, request, members, node.clock.wall_ms())

    return ask(node, call, request.group_id, event, response)
