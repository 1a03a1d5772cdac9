"""DeleteShareGroupState: delete the state of share partitions; sent by a group's coordinator to the share coordinator (KIP-932)."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.protocol.schema import ZERO_UUID, Int16, Int32, Message, String, Uuid, message, struct


@struct
class PartitionData:
    partition: Int32 = 0


@struct
class DeleteStateData:
    topic_id: Uuid = ZERO_UUID
    partitions: Sequence[PartitionData] = ()


@message(key=86, versions="0", flexible="0+")
class DeleteShareGroupStateRequest(Message):
    group_id: String = ""
    topics: Sequence[DeleteStateData] = ()


@struct
class PartitionResult:
    partition: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None


@struct
class DeleteStateResult:
    topic_id: Uuid = ZERO_UUID
    partitions: Sequence[PartitionResult] = ()


@message(key=86, versions="0", flexible="0+")
class DeleteShareGroupStateResponse(Message):
    results: Sequence[DeleteStateResult] = ()
