"""Heartbeat: a member stays in its group, and is notified of rebalances."""

from __future__ import annotations

from ottla.protocol.schema import Int16, Int32, Message, String, message, since


@message(key=12, versions="0-4", flexible="4+")
class HeartbeatRequest(Message):
    group_id: String = ""
    generation_id: Int32 = 0
    member_id: String = ""
    group_instance_id: String | None = since(3, default=None)


@message(key=12, versions="0-4", flexible="4+")
class HeartbeatResponse(Message):
    throttle_time_ms: Int32 = since(1, default=0, ignorable=True)
    error_code: Int16 = 0
