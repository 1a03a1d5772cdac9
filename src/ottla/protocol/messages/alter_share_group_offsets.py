"""AlterShareGroupOffsets: set the offsets from which a share group without members reads (KIP-932)."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.protocol.schema import ZERO_UUID, Int16, Int32, Int64, Message, String, Uuid, message, struct


@struct
class AlterShareGroupOffsetsRequestPartition:
    partition_index: Int32 = 0
    start_offset: Int64 = 0


@struct
class AlterShareGroupOffsetsRequestTopic:
    topic_name: String = ""
    partitions: Sequence[AlterShareGroupOffsetsRequestPartition] = ()


@message(key=91, versions="0", flexible="0+")
class AlterShareGroupOffsetsRequest(Message):
    group_id: String = ""
    topics: Sequence[AlterShareGroupOffsetsRequestTopic] = ()


@struct
class AlterShareGroupOffsetsResponsePartition:
    partition_index: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None


@struct
class AlterShareGroupOffsetsResponseTopic:
    topic_name: String = ""
    topic_id: Uuid = ZERO_UUID
    partitions: Sequence[AlterShareGroupOffsetsResponsePartition] = ()


@message(key=91, versions="0", flexible="0+")
class AlterShareGroupOffsetsResponse(Message):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
    responses: Sequence[AlterShareGroupOffsetsResponseTopic] = ()
