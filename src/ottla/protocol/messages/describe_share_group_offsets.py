"""DescribeShareGroupOffsets: the offsets from which share groups read, and their lags (KIP-932, KIP-1226)."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.protocol.schema import ZERO_UUID, Int16, Int32, Int64, Message, String, Uuid, message, since, struct


@struct
class DescribeShareGroupOffsetsRequestTopic:
    topic_name: String = ""
    partitions: Sequence[Int32] = ()


@struct
class DescribeShareGroupOffsetsRequestGroup:
    group_id: String = ""
    topics: Sequence[DescribeShareGroupOffsetsRequestTopic] | None = ()
    """None for all topics of the group."""


@message(key=90, versions="0-1", flexible="0+")
class DescribeShareGroupOffsetsRequest(Message):
    groups: Sequence[DescribeShareGroupOffsetsRequestGroup] = ()


@struct
class DescribeShareGroupOffsetsResponsePartition:
    partition_index: Int32 = 0
    start_offset: Int64 = 0
    leader_epoch: Int32 = 0
    lag: Int64 = since(1, default=-1, ignorable=True)
    """The number of records still to deliver; -1 if it is not known."""
    error_code: Int16 = 0
    error_message: String | None = None


@struct
class DescribeShareGroupOffsetsResponseTopic:
    topic_name: String = ""
    topic_id: Uuid = ZERO_UUID
    partitions: Sequence[DescribeShareGroupOffsetsResponsePartition] = ()


@struct
class DescribeShareGroupOffsetsResponseGroup:
    group_id: String = ""
    topics: Sequence[DescribeShareGroupOffsetsResponseTopic] = ()
    error_code: Int16 = 0
    error_message: String | None = None


@message(key=90, versions="0-1", flexible="0+")
class DescribeShareGroupOffsetsResponse(Message):
    throttle_time_ms: Int32 = 0
    groups: Sequence[DescribeShareGroupOffsetsResponseGroup] = ()
