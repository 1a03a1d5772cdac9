"""ReadShareGroupStateSummary: the start offsets of share partitions, without the states of records (KIP-932)."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.protocol.schema import ZERO_UUID, Int16, Int32, Int64, Message, String, Uuid, message, since, struct


@struct
class PartitionData:
    partition: Int32 = 0
    leader_epoch: Int32 = 0


@struct
class ReadStateSummaryData:
    topic_id: Uuid = ZERO_UUID
    partitions: Sequence[PartitionData] = ()


@message(key=87, versions="0-1", flexible="0+")
class ReadShareGroupStateSummaryRequest(Message):
    group_id: String = ""
    topics: Sequence[ReadStateSummaryData] = ()


@struct
class PartitionResult:
    partition: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
    state_epoch: Int32 = 0
    leader_epoch: Int32 = 0
    start_offset: Int64 = 0
    delivery_complete_count: Int32 = since(1, default=-1, ignorable=True)
    """The number of records from the start offset on that are not delivered any more (KIP-1226)."""


@struct
class ReadStateSummaryResult:
    topic_id: Uuid = ZERO_UUID
    partitions: Sequence[PartitionResult] = ()


@message(key=87, versions="0-1", flexible="0+")
class ReadShareGroupStateSummaryResponse(Message):
    results: Sequence[ReadStateSummaryResult] = ()
