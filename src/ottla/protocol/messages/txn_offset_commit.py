"""TxnOffsetCommit: store the offsets of a group when a transaction commits."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.protocol.schema import ZERO_UUID, Int16, Int32, Int64, Message, String, Uuid, message, since, struct


@struct
class TxnOffsetCommitRequestPartition:
    partition_index: Int32 = 0
    committed_offset: Int64 = 0
    committed_leader_epoch: Int32 = since(2, default=-1, ignorable=True)
    committed_metadata: String | None = ""


@struct
class TxnOffsetCommitRequestTopic:
    """A topic by name up to v5, by id after (KIP-1319)."""

    name: String = since(0, until=5, default="", ignorable=True)
    topic_id: Uuid = since(6, default=ZERO_UUID, ignorable=True)
    partitions: Sequence[TxnOffsetCommitRequestPartition] = ()


@message(key=28, versions="0-6", flexible="3+")
class TxnOffsetCommitRequest(Message):
    transactional_id: String = ""
    group_id: String = ""
    producer_id: Int64 = 0
    producer_epoch: Int16 = 0
    generation_id_or_member_epoch: Int32 = since(3, default=-1)
    member_id: String = since(3, default="")
    group_instance_id: String | None = since(3, default=None)
    topics: Sequence[TxnOffsetCommitRequestTopic] = ()


@struct
class TxnOffsetCommitResponsePartition:
    partition_index: Int32 = 0
    error_code: Int16 = 0


@struct
class TxnOffsetCommitResponseTopic:
    name: String = since(0, until=5, default="", ignorable=True)
    topic_id: Uuid = since(6, default=ZERO_UUID, ignorable=True)
    partitions: Sequence[TxnOffsetCommitResponsePartition] = ()


@message(key=28, versions="0-6", flexible="3+")
class TxnOffsetCommitResponse(Message):
    throttle_time_ms: Int32 = 0
    topics: Sequence[TxnOffsetCommitResponseTopic] = ()
