"""LeaveGroup: remove one member up to v2, several in later versions (KIP-345)."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.protocol.schema import Int16, Int32, Message, String, message, since, struct


@struct
class MemberIdentity:
    """A member by its id, or a static one by its instance id."""

    member_id: String = ""
    group_instance_id: String | None = None
    reason: String | None = since(5, default=None, ignorable=True)


@message(key=13, versions="0-5", flexible="4+")
class LeaveGroupRequest(Message):
    group_id: String = ""
    member_id: String = since(0, until=2, default="")
    members: Sequence[MemberIdentity] = since(3, default=())


@struct
class MemberResponse:
    member_id: String = ""
    group_instance_id: String | None = None
    error_code: Int16 = 0


@message(key=13, versions="0-5", flexible="4+")
class LeaveGroupResponse(Message):
    throttle_time_ms: Int32 = since(1, default=0, ignorable=True)
    error_code: Int16 = 0
    members: Sequence[MemberResponse] = since(3, default=())
