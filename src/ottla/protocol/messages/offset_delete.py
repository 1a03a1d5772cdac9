"""OffsetDelete: delete a group's offsets of partitions that it does not read any more (KIP-496)."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.protocol.schema import Int16, Int32, Message, String, message, struct


@struct
class OffsetDeleteRequestPartition:
    partition_index: Int32 = 0


@struct
class OffsetDeleteRequestTopic:
    name: String = ""
    partitions: Sequence[OffsetDeleteRequestPartition] = ()


@message(key=47, versions="0")
class OffsetDeleteRequest(Message):
    group_id: String = ""
    topics: Sequence[OffsetDeleteRequestTopic] = ()


@struct
class OffsetDeleteResponsePartition:
    partition_index: Int32 = 0
    error_code: Int16 = 0


@struct
class OffsetDeleteResponseTopic:
    name: String = ""
    partitions: Sequence[OffsetDeleteResponsePartition] = ()


@message(key=47, versions="0")
class OffsetDeleteResponse(Message):
    error_code: Int16 = 0
    throttle_time_ms: Int32 = 0
    topics: Sequence[OffsetDeleteResponseTopic] = ()
