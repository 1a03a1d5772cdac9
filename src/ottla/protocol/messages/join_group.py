"""JoinGroup: become a member of a group, and get its leader."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.protocol.schema import Bool, Bytes, Int16, Int32, Message, String, message, since, struct


@struct
class JoinGroupRequestProtocol:
    name: String = ""
    metadata: Bytes = b""


@message(key=11, versions="0-9", flexible="6+")
class JoinGroupRequest(Message):
    group_id: String = ""
    session_timeout_ms: Int32 = 0
    rebalance_timeout_ms: Int32 = since(1, default=-1, ignorable=True)
    """-1 means the session timeout."""
    member_id: String = ""
    """Empty at first: the coordinator assigns an id, and the client repeats the request with it (KIP-394)."""
    group_instance_id: String | None = since(5, default=None)
    """The name of a static member (KIP-345)."""
    protocol_type: String = ""
    protocols: Sequence[JoinGroupRequestProtocol] = ()
    """Protocols, the preferred one first."""
    reason: String | None = since(8, default=None, ignorable=True)


@struct
class JoinGroupResponseMember:
    member_id: String = ""
    group_instance_id: String | None = since(5, default=None, ignorable=True)
    metadata: Bytes = b""


@message(key=11, versions="0-9", flexible="6+")
class JoinGroupResponse(Message):
    throttle_time_ms: Int32 = since(2, default=0, ignorable=True)
    error_code: Int16 = 0
    generation_id: Int32 = -1
    protocol_type: String | None = since(7, default=None, ignorable=True)
    protocol_name: String | None = since(0, default="", nullable_since=7)
    leader: String = ""
    skip_assignment: Bool = since(9, default=False)
    """True if the leader must keep the previous assignment (KIP-814)."""
    member_id: String = ""
    members: Sequence[JoinGroupResponseMember] = ()
    """Only for the leader."""
