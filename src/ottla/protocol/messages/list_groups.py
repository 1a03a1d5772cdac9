"""ListGroups: the groups that this broker coordinates."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.protocol.schema import Int16, Int32, Message, String, message, since, struct


@message(key=16, versions="0-5", flexible="3+")
class ListGroupsRequest(Message):
    states_filter: Sequence[String] = since(4, default=())
    """An empty list requests every state; the same for types."""
    types_filter: Sequence[String] = since(5, default=())


@struct
class ListedGroup:
    group_id: String = ""
    protocol_type: String = ""
    group_state: String = since(4, default="", ignorable=True)
    group_type: String = since(5, default="", ignorable=True)


@message(key=16, versions="0-5", flexible="3+")
class ListGroupsResponse(Message):
    throttle_time_ms: Int32 = since(1, default=0, ignorable=True)
    error_code: Int16 = 0
    groups: Sequence[ListedGroup] = ()
