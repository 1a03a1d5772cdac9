"""OffsetCommit: store the offsets of a group."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.protocol.schema import ZERO_UUID, Int16, Int32, Int64, Message, String, Uuid, message, since, struct


@struct
class OffsetCommitRequestPartition:
    partition_index: Int32 = 0
    committed_offset: Int64 = 0
    committed_leader_epoch: Int32 = since(6, default=-1, ignorable=True)
    committed_metadata: String | None = ""


@struct
class OffsetCommitRequestTopic:
    """A topic by name up to v9, by id after."""

    name: String = since(0, until=9, default="", ignorable=True)
    topic_id: Uuid = since(10, default=ZERO_UUID, ignorable=True)
    partitions: Sequence[OffsetCommitRequestPartition] = ()


@message(key=8, versions="2-10", flexible="8+")
class OffsetCommitRequest(Message):
    group_id: String = ""
    generation_id_or_member_epoch: Int32 = -1
    """Negative for a commit without group membership."""
    member_id: String = ""
    group_instance_id: String | None = since(7, default=None)
    retention_time_ms: Int64 = since(2, until=4, default=-1, ignorable=True)
    topics: Sequence[OffsetCommitRequestTopic] = ()


@struct
class OffsetCommitResponsePartition:
    partition_index: Int32 = 0
    error_code: Int16 = 0


@struct
class OffsetCommitResponseTopic:
    name: String = since(0, until=9, default="", ignorable=True)
    topic_id: Uuid = since(10, default=ZERO_UUID, ignorable=True)
    partitions: Sequence[OffsetCommitResponsePartition] = ()


@message(key=8, versions="2-10", flexible="8+")
class OffsetCommitResponse(Message):
    throttle_time_ms: Int32 = since(3, default=0, ignorable=True)
    topics: Sequence[OffsetCommitResponseTopic] = ()
