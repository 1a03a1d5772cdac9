"""LeaveGroup: remove members. Their partitions are assigned to the other members at once."""

from __future__ import annotations

from typing import Any

from ottla.broker.apis.group_calls import submit_to_group
from ottla.broker.network_server.call import Call, Outcome
from ottla.broker.node import BrokerNode
from ottla.coordination.groups.events import LeaveRequested
from ottla.errors import ErrorCode
from ottla.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity, MemberResponse
from ottla.protocol.schema import Message

MANY_SINCE = 3
"""From this version on a request can remove several members."""


def handle(node: BrokerNode, call: Call, request: LeaveGroupRequest) -> Message | Outcome:
    """Return an error code for each member, or one for the request."""
    members = request.members if call.version >= MANY_SINCE else [MemberIdentity(request.member_id)]

    def response(reply: Any) -> LeaveGroupResponse:
        if reply == ErrorCode.UNKNOWN_MEMBER_ID and call.version >= MANY_SINCE:
            # An unknown group has none of the members; a code for the whole request would make the client retry.
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

    return submit_to_group(node, call, request.group_id, event, response)
