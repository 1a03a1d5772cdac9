"""StreamsGroupTopologyDescriptionUpdate: a member sends the description of its topology, which a heartbeat requested (KIP-1331)."""

from __future__ import annotations

from typing import Any

from ottla.broker.apis.group_calls import submit_to_group
from ottla.broker.apis.streams_group_heartbeat import STREAMS_OFF, has_streams_groups
from ottla.broker.network_server.call import Call, Outcome
from ottla.broker.node import BrokerNode
from ottla.coordination.groups.streams.events import DescriptionPushed
from ottla.errors import ErrorCode
from ottla.protocol.messages.streams_group_topology_description_update import (
    StreamsGroupTopologyDescriptionUpdateRequest,
    StreamsGroupTopologyDescriptionUpdateResponse,
)
from ottla.protocol.schema import Message


def handle(node: BrokerNode, call: Call, request: StreamsGroupTopologyDescriptionUpdateRequest) -> Message | Outcome:
    if not has_streams_groups(node):
        return refused(ErrorCode.UNSUPPORTED_VERSION, STREAMS_OFF)
    if not request.group_id:
        return refused(ErrorCode.INVALID_REQUEST, "the group id is empty")

    def response(reply: Any) -> Message:
        is_response = isinstance(reply, StreamsGroupTopologyDescriptionUpdateResponse)
        return reply if is_response else refused(reply, None)

    return submit_to_group(node, call, request.group_id, lambda ticket: DescriptionPushed(ticket, request), response)


def refused(code: int, text: str | None) -> StreamsGroupTopologyDescriptionUpdateResponse:
    return StreamsGroupTopologyDescriptionUpdateResponse(error_code=code, error_message=text)
