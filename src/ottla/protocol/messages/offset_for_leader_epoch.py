"""OffsetForLeaderEpoch: where a leader's time ended, to find where two logs part (KIP-101)."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.protocol.schema import Int16, Int32, Int64, Message, String, message, since, struct


@struct
class OffsetForLeaderPartition:
    partition: Int32 = 0
    current_leader_epoch: Int32 = -1
    """What the asker takes for the present epoch: who is behind, or ahead of us, is told so (KIP-320)."""
    leader_epoch: Int32 = 0
    """The epoch whose end is asked for."""


@struct
class OffsetForLeaderTopic:
    topic: String = ""
    partitions: Sequence[OffsetForLeaderPartition] = ()


@message(key=23, versions="2-4", flexible="4+")
class OffsetForLeaderEpochRequest(Message):
    replica_id: Int32 = since(3, default=-2, ignorable=True)
    """-1 from a consumer, -2 from one that may look beyond the high watermark."""
    topics: Sequence[OffsetForLeaderTopic] = ()


@struct
class EpochEndOffset:
    error_code: Int16 = 0
    partition: Int32 = 0
    leader_epoch: Int32 = -1
    """The last epoch we know that is not after the one asked for."""
    end_offset: Int64 = -1
    """The offset after its last record, -1 where no epoch is known."""


@struct
class OffsetForLeaderTopicResult:
    topic: String = ""
    partitions: Sequence[EpochEndOffset] = ()


@message(key=23, versions="2-4", flexible="4+")
class OffsetForLeaderEpochResponse(Message):
    throttle_time_ms: Int32 = 0
    topics: Sequence[OffsetForLeaderTopicResult] = ()
