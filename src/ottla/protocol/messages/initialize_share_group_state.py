"""InitializeShareGroupState: create the state of share partitions; sent by a group's coordinator to the share coordinator (KIP-932)."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.protocol.schema import ZERO_UUID, Int16, Int32, Int64, Message, String, Uuid, message, struct


@struct
class PartitionData:
    partition: Int32 = 0
    state_epoch: Int32 = 0
    start_offset: Int64 = 0
    """The offset from which the group reads, or -1 if it is not known yet."""


@struct
class InitializeStateData:
    topic_id: Uuid = ZERO_UUID
    partitions: Sequence[PartitionData] = ()


@message(key=83, versions="0", flexible="0+")
class InitializeShareGroupStateRequest(Message):
    group_id: String = ""
    topics: Sequence[InitializeStateData] = ()


@struct
class PartitionResult:
    partition: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None


@struct
class InitializeStateResult:
    topic_id: Uuid = ZERO_UUID
    partitions: Sequence[PartitionResult] = ()


@message(key=83, versions="0", flexible="0+")
class InitializeShareGroupStateResponse(Message):
    results: Sequence[InitializeStateResult] = ()
