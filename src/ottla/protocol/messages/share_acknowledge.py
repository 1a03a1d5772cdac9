"""ShareAcknowledge: acknowledge records that a member of a share group has acquired (KIP-932)."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.protocol.messages.share_fetch import AcknowledgementBatch, LeaderIdAndEpoch, NodeEndpoint
from ottla.protocol.schema import ZERO_UUID, Bool, Int16, Int32, Message, String, Uuid, message, part, since, struct


@struct
class AcknowledgePartition:
    partition_index: Int32 = 0
    acknowledgement_batches: Sequence[AcknowledgementBatch] = ()


@struct
class AcknowledgeTopic:
    topic_id: Uuid = ZERO_UUID
    partitions: Sequence[AcknowledgePartition] = ()


@message(key=79, versions="1-2", flexible="0+")
class ShareAcknowledgeRequest(Message):
    group_id: String | None = None
    member_id: String | None = ""
    share_session_epoch: Int32 = 0
    """-1 to close the share session, else one more than in the previous request."""
    is_renew_ack: Bool = since(2, default=False)
    """True if the request renews acquisition locks (KIP-1222)."""
    topics: Sequence[AcknowledgeTopic] = ()


@struct
class PartitionData:
    partition_index: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
    current_leader: LeaderIdAndEpoch = part(LeaderIdAndEpoch)


@struct
class ShareAcknowledgeTopicResponse:
    topic_id: Uuid = ZERO_UUID
    partitions: Sequence[PartitionData] = ()


@message(key=79, versions="1-2", flexible="0+")
class ShareAcknowledgeResponse(Message):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
    acquisition_lock_timeout_ms: Int32 = since(2, default=0, ignorable=True)
    responses: Sequence[ShareAcknowledgeTopicResponse] = ()
    node_endpoints: Sequence[NodeEndpoint] = ()
