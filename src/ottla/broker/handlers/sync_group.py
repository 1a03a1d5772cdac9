"""SyncGroup: what the leader gave to whom. The answer waits until the leader has brought it."""

from __future__ import annotations

from typing import Any

from ottla.broker.group_calls import ask
from ottla.broker.node import BrokerNode
from ottla.broker.requests.call import Call, Outcome
from ottla.coordination.groups.classic.answers import sync_refused
from ottla.coordination.groups.events import SyncRequested
from ottla.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from ottla.protocol.schema import Message


def handle(node: BrokerNode, call: Call, request: SyncGroupRequest) -> Message | Outcome:
    """A member's assignment, or why it gets none."""

    def response(reply: Any) -> SyncGroupResponse:
        return reply if isinstance(reply, SyncGroupResponse) else sync_refused(reply)

    return ask(
        node, call, request.group_id, lambda ticket: SyncRequested(ticket, request, node.clock.wall_ms()), response
    )
