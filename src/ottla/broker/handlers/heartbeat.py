"""Heartbeat: a member lives, and hears whether a rebalance is under way."""

from __future__ import annotations

from ottla.broker.group_calls import ask
from ottla.broker.node import BrokerNode
from ottla.broker.requests.call import Call, Outcome
from ottla.coordination.groups.events import HeartbeatReceived
from ottla.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from ottla.protocol.schema import Message


def handle(node: BrokerNode, call: Call, request: HeartbeatRequest) -> Message | Outcome:
    return ask(
        node,
        call,
        request.group_id,
        lambda ticket: HeartbeatReceived(ticket, request),
        lambda code: HeartbeatResponse(error_code=code),
    )
