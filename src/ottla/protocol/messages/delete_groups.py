"""DeleteGroups: delete groups without members, with their offsets."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.protocol.schema import Int16, Int32, Message, String, message, since, struct


@message(key=42, versions="0-3", flexible="2+")
class DeleteGroupsRequest(Message):
    groups_names: Sequence[String] = ()


@struct
class DeletableGroupResult:
    group_id: String = ""
    error_code: Int16 = 0
    error_message: String | None = since(3, default=None, ignorable=True)


@message(key=42, versions="0-3", flexible="2+")
class DeleteGroupsResponse(Message):
    throttle_time_ms: Int32 = 0
    results: Sequence[DeletableGroupResult] = ()
