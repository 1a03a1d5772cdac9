"""OffsetForLeaderEpoch: the end offset of a leader epoch, to find where two logs diverge (KIP-101)."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.protocol.schema import Int16, Int32, Int64, Message, String, message, since, struct


@struct
class OffsetForLeaderPartition:
    partition: Int32 = 0
    current_leader_epoch: Int32 = -1
    """The current epoch as known to the requester; if it is outdated or too new, the response is an error (KIP-320)."""
    leader_epoch: Int32 = 0
    """The epoch of the requested end."""


@struct
class OffsetForLeaderTopic:
    topic: String = ""
    partitions: Sequence[OffsetForLeaderPartition] = ()


@message(key=23, versions="2-4", flexible="4+")
class OffsetForLeaderEpochRequest(Message):
    replica_id: Int32 = since(3, default=-2, ignorable=True)
    """-1 for a consumer, -2 for one that may read beyond the high watermark."""
    topics: Sequence[OffsetForLeaderTopic] = ()


@struct
class EpochEndOffset:
    error_code: Int16 = 0
    partition: Int32 = 0
    leader_epoch: Int32 = -1
    """The largest known epoch that is not after the requested one."""
    end_offset: Int64 = -1
    """The offset after its last record; -1 without such an epoch."""


@struct
class OffsetForLeaderTopicResult:
    topic: String = ""
    partitions: Sequence[EpochEndOffset] = ()


@message(key=23, versions="2-4", flexible="4+")
class OffsetForLeaderEpochResponse(Message):
    throttle_time_ms: Int32 = 0
    topics: Sequence[OffsetForLeaderTopicResult] = ()
