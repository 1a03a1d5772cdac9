"""WriteShareGroupState: store the state of share partitions; sent by their leader to the share coordinator (KIP-932)."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.protocol.messages.read_share_group_state import StateBatch
from ottla.protocol.schema import ZERO_UUID, Int16, Int32, Int64, Message, String, Uuid, message, since, struct


@struct
class PartitionData:
    partition: Int32 = 0
    state_epoch: Int32 = 0
    leader_epoch: Int32 = 0
    start_offset: Int64 = 0
    """-1 if the start offset does not change."""
    delivery_complete_count: Int32 = since(1, default=-1, ignorable=True)
    """The number of records from the start offset on that are not delivered any more (KIP-1226)."""
    state_batches: Sequence[StateBatch] = ()


@struct
class WriteStateData:
    topic_id: Uuid = ZERO_UUID
    partitions: Sequence[PartitionData] = ()


@message(key=85, versions="0-1", flexible="0+")
class WriteShareGroupStateRequest(Message):
    group_id: String = ""
    topics: Sequence[WriteStateData] = ()


@struct
class PartitionResult:
    partition: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None


@struct
class WriteStateResult:
    topic_id: Uuid = ZERO_UUID
    partitions: Sequence[PartitionResult] = ()


@message(key=85, versions="0-1", flexible="0+")
class WriteShareGroupStateResponse(Message):
    results: Sequence[WriteStateResult] = ()
