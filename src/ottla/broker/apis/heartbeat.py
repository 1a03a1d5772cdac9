"""Heartbeat: keep a member's session, and return whether a rebalance is under way."""

from __future__ import annotations

from ottla.broker.apis.group_calls import submit_to_group
from ottla.broker.network_server.call import Call, Outcome
from ottla.broker.node import BrokerNode
from ottla.coordination.groups.events import HeartbeatReceived
from ottla.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from ottla.protocol.schema import Message


def handle(node: BrokerNode, call: Call, request: HeartbeatRequest) -> Message | Outcome:
    return submit_to_group(
        node,
        call,
        request.group_id,
        lambda ticket: HeartbeatReceived(ticket, request),
        lambda code: HeartbeatResponse(error_code=code),
    )
