"""The events of streams groups, in addition to those of all groups."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from ottla.coordination.groups.streams.topology import InternalTopic
from ottla.protocol.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
)
from ottla.protocol.messages.streams_group_topology_description_update import (
    StreamsGroupTopologyDescriptionUpdateRequest,
)


class StreamsHeartbeat(Struct, frozen=True):
    """A member joins, stays or leaves. The reply is a HeartbeatResult."""

    ticket: int
    request: StreamsGroupHeartbeatRequest
    client_id: str
    client_host: str
    wall_ms: int
    version: int = 1
    """The version of the request, which determines the conditions that the client knows."""


class DescriptionPushed(Struct, frozen=True):
    """A member sends the description of its topology. The reply is the response."""

    ticket: int
    request: StreamsGroupTopologyDescriptionUpdateRequest


class HeartbeatResult(Struct, frozen=True):
    """The reply to a heartbeat."""

    response: StreamsGroupHeartbeatResponse
    missing: Sequence[InternalTopic] = ()
    """Internal topics that the caller creates, if the member may."""
