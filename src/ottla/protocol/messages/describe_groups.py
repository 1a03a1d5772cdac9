"""DescribeGroups: the state and the members of groups of the classic protocol."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.protocol.messages.metadata import NO_OPERATIONS
from ottla.protocol.schema import Bool, Bytes, Int16, Int32, Message, String, message, since, struct


@message(key=15, versions="0-6", flexible="5+")
class DescribeGroupsRequest(Message):
    groups: Sequence[String] = ()
    include_authorized_operations: Bool = since(3, default=False)


@struct
class DescribedGroupMember:
    member_id: String = ""
    group_instance_id: String | None = since(4, default=None, ignorable=True)
    client_id: String = ""
    client_host: String = ""
    member_metadata: Bytes = b""
    member_assignment: Bytes = b""


@struct
class DescribedGroup:
    error_code: Int16 = 0
    error_message: String | None = since(6, default=None)
    group_id: String = ""
    group_state: String = ""
    protocol_type: String = ""
    protocol_data: String = ""
    """The name of the selected protocol."""
    members: Sequence[DescribedGroupMember] = ()
    authorized_operations: Int32 = since(3, default=NO_OPERATIONS)


@message(key=15, versions="0-6", flexible="5+")
class DescribeGroupsResponse(Message):
    throttle_time_ms: Int32 = since(1, default=0, ignorable=True)
    groups: Sequence[DescribedGroup] = ()
