"""OffsetFetch: read the offsets of groups; one group up to v7, several in later versions (KIP-709)."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.protocol.schema import ZERO_UUID, Bool, Int16, Int32, Int64, Message, String, Uuid, message, since, struct


@struct
class OffsetFetchRequestTopic:
    name: String = ""
    partition_indexes: Sequence[Int32] = ()


@struct
class OffsetFetchRequestTopics:
    """A topic by name up to v9, by id after."""

    name: String = since(8, until=9, default="", ignorable=True)
    topic_id: Uuid = since(10, default=ZERO_UUID, ignorable=True)
    partition_indexes: Sequence[Int32] = ()


@struct
class OffsetFetchRequestGroup:
    group_id: String = ""
    member_id: String | None = since(9, default=None, ignorable=True)
    member_epoch: Int32 = since(9, default=-1, ignorable=True)
    topics: Sequence[OffsetFetchRequestTopics] | None = ()
    """None requests every partition with an offset of the group."""


@message(key=9, versions="1-10", flexible="6+")
class OffsetFetchRequest(Message):
    group_id: String = since(0, until=7, default="")
    topics: Sequence[OffsetFetchRequestTopic] | None = since(0, until=7, default=(), nullable_since=2)
    """None requests every partition with an offset of the group."""
    groups: Sequence[OffsetFetchRequestGroup] = since(8, default=())
    require_stable: Bool = since(7, default=False)


@struct
class OffsetFetchResponsePartition:
    """An offset of -1 means that there is none."""

    partition_index: Int32 = 0
    committed_offset: Int64 = 0
    committed_leader_epoch: Int32 = since(5, default=-1, ignorable=True)
    metadata: String | None = ""
    error_code: Int16 = 0


@struct
class OffsetFetchResponseTopic:
    name: String = ""
    partitions: Sequence[OffsetFetchResponsePartition] = ()


@struct
class OffsetFetchResponsePartitions:
    """An offset of -1 means that there is none."""

    partition_index: Int32 = 0
    committed_offset: Int64 = 0
    committed_leader_epoch: Int32 = -1
    metadata: String | None = ""
    error_code: Int16 = 0


@struct
class OffsetFetchResponseTopics:
    name: String = since(8, until=9, default="", ignorable=True)
    topic_id: Uuid = since(10, default=ZERO_UUID, ignorable=True)
    partitions: Sequence[OffsetFetchResponsePartitions] = ()


@struct
class OffsetFetchResponseGroup:
    group_id: String = ""
    topics: Sequence[OffsetFetchResponseTopics] = ()
    error_code: Int16 = 0


@message(key=9, versions="1-10", flexible="6+")
class OffsetFetchResponse(Message):
    throttle_time_ms: Int32 = since(3, default=0, ignorable=True)
    topics: Sequence[OffsetFetchResponseTopic] = since(0, until=7, default=())
    error_code: Int16 = since(2, until=7, default=0, ignorable=True)
    groups: Sequence[OffsetFetchResponseGroup] = since(8, default=())
