"""ListOffsets: the offset of a time, of the start or of the end of a partition."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.protocol.schema import Int8, Int16, Int32, Int64, Message, String, message, since, struct


@struct
class ListOffsetsPartition:
    partition_index: Int32 = 0
    current_leader_epoch: Int32 = since(4, default=-1, ignorable=True)
    timestamp: Int64 = 0
    """Milliseconds, or one of `model.EARLIEST`, `LATEST`, `MAX_TIMESTAMP`."""


@struct
class ListOffsetsTopic:
    name: String = ""
    partitions: Sequence[ListOffsetsPartition] = ()


@message(key=2, versions="1-11", flexible="6+")
class ListOffsetsRequest(Message):
    replica_id: Int32 = 0
    """The follower's id; -1 for a consumer."""
    isolation_level: Int8 = since(2, default=0)
    topics: Sequence[ListOffsetsTopic] = ()
    timeout_ms: Int32 = since(10, default=0, ignorable=True)


@struct
class ListOffsetsPartitionResponse:
    partition_index: Int32 = 0
    error_code: Int16 = 0
    timestamp: Int64 = -1
    offset: Int64 = -1
    leader_epoch: Int32 = since(4, default=-1)


@struct
class ListOffsetsTopicResponse:
    name: String = ""
    partitions: Sequence[ListOffsetsPartitionResponse] = ()


@message(key=2, versions="1-11", flexible="6+")
class ListOffsetsResponse(Message):
    throttle_time_ms: Int32 = since(2, default=0, ignorable=True)
    topics: Sequence[ListOffsetsTopicResponse] = ()
