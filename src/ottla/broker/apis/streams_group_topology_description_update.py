"""StreamsGroupTopologyDescriptionUpdate: store the description of a topology (KIP-1331).

Kafka stores descriptions in a plugin, and without one it rejects the request. There is no plugin here, and heartbeats never request a description.
"""

from __future__ import annotations

from ottla.broker.apis.streams_group_heartbeat import STREAMS_OFF, has_streams_groups
from ottla.broker.network_server.call import Call
from ottla.broker.node import BrokerNode
from ottla.errors import ErrorCode
from ottla.protocol.messages.streams_group_topology_description_update import (
    StreamsGroupTopologyDescriptionUpdateRequest,
    StreamsGroupTopologyDescriptionUpdateResponse,
)


def handle(
    node: BrokerNode, call: Call, request: StreamsGroupTopologyDescriptionUpdateRequest
) -> StreamsGroupTopologyDescriptionUpdateResponse:
    text = "this broker does not store descriptions of topologies" if has_streams_groups(node) else STREAMS_OFF
    return StreamsGroupTopologyDescriptionUpdateResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, error_message=text)
