"""DeleteRecords: delete the records before an offset."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.protocol.schema import Int16, Int32, Int64, Message, String, message, struct


@struct
class DeleteRecordsPartition:
    partition_index: Int32 = 0
    offset: Int64 = 0
    """The first offset to keep; -1 for the high watermark."""


@struct
class DeleteRecordsTopic:
    name: String = ""
    partitions: Sequence[DeleteRecordsPartition] = ()


@message(key=21, versions="0-2", flexible="2+")
class DeleteRecordsRequest(Message):
    topics: Sequence[DeleteRecordsTopic] = ()
    timeout_ms: Int32 = 0


@struct
class DeleteRecordsPartitionResult:
    partition_index: Int32 = 0
    low_watermark: Int64 = 0
    """The new first offset."""
    error_code: Int16 = 0


@struct
class DeleteRecordsTopicResult:
    name: String = ""
    partitions: Sequence[DeleteRecordsPartitionResult] = ()


@message(key=21, versions="0-2", flexible="2+")
class DeleteRecordsResponse(Message):
    throttle_time_ms: Int32 = 0
    topics: Sequence[DeleteRecordsTopicResult] = ()
