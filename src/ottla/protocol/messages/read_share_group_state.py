"""ReadShareGroupState: the state of share partitions; requested by their leader from the share coordinator (KIP-932)."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.protocol.schema import ZERO_UUID, Int8, Int16, Int32, Int64, Message, String, Uuid, message, struct


@struct
class PartitionData:
    partition: Int32 = 0
    leader_epoch: Int32 = 0
    """The epoch of the leader that requests the state; an older leader is fenced."""


@struct
class ReadStateData:
    topic_id: Uuid = ZERO_UUID
    partitions: Sequence[PartitionData] = ()


@message(key=84, versions="0", flexible="0+")
class ReadShareGroupStateRequest(Message):
    group_id: String = ""
    topics: Sequence[ReadStateData] = ()


@struct
class StateBatch:
    """The state of consecutive records from the start offset on, both ends included."""

    first_offset: Int64 = 0
    last_offset: Int64 = 0
    delivery_state: Int8 = 0
    """0 available, 2 acknowledged, 4 archived. An acquired record is stored as available."""
    delivery_count: Int16 = 0


@struct
class PartitionResult:
    partition: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
    state_epoch: Int32 = 0
    start_offset: Int64 = 0
    """-1 if the state has not been initialized."""
    state_batches: Sequence[StateBatch] = ()


@struct
class ReadStateResult:
    topic_id: Uuid = ZERO_UUID
    partitions: Sequence[PartitionResult] = ()


@message(key=84, versions="0", flexible="0+")
class ReadShareGroupStateResponse(Message):
    results: Sequence[ReadStateResult] = ()
