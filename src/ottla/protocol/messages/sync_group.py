"""SyncGroup: the leader sends the assignment, every member receives its part."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.protocol.schema import Bytes, Int16, Int32, Message, String, message, since, struct


@struct
class SyncGroupRequestAssignment:
    member_id: String = ""
    assignment: Bytes = b""


@message(key=14, versions="0-5", flexible="4+")
class SyncGroupRequest(Message):
    group_id: String = ""
    generation_id: Int32 = 0
    member_id: String = ""
    group_instance_id: String | None = since(3, default=None)
    protocol_type: String | None = since(5, default=None, ignorable=True)
    protocol_name: String | None = since(5, default=None, ignorable=True)
    assignments: Sequence[SyncGroupRequestAssignment] = ()
    """Only from the leader."""


@message(key=14, versions="0-5", flexible="4+")
class SyncGroupResponse(Message):
    throttle_time_ms: Int32 = since(1, default=0, ignorable=True)
    error_code: Int16 = 0
    protocol_type: String | None = since(5, default=None, ignorable=True)
    protocol_name: String | None = since(5, default=None, ignorable=True)
    assignment: Bytes = b""
