"""DeleteShareGroupOffsets: delete the offsets of a share group without members, for whole topics (KIP-932)."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.protocol.schema import ZERO_UUID, Int16, Int32, Message, String, Uuid, message, struct


@struct
class DeleteShareGroupOffsetsRequestTopic:
    topic_name: String = ""


@message(key=92, versions="0", flexible="0+")
class DeleteShareGroupOffsetsRequest(Message):
    group_id: String = ""
    topics: Sequence[DeleteShareGroupOffsetsRequestTopic] = ()


@struct
class DeleteShareGroupOffsetsResponseTopic:
    topic_name: String = ""
    topic_id: Uuid = ZERO_UUID
    error_code: Int16 = 0
    error_message: String | None = None


@message(key=92, versions="0", flexible="0+")
class DeleteShareGroupOffsetsResponse(Message):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
    responses: Sequence[DeleteShareGroupOffsetsResponseTopic] = ()
