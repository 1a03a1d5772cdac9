"""ShareGroupHeartbeat: join, stay in and leave a share group (KIP-932)."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.protocol.schema import ZERO_UUID, Int16, Int32, Message, String, Uuid, message, struct


@message(key=76, versions="1", flexible="0+")
class ShareGroupHeartbeatRequest(Message):
    """None means: unchanged since the last heartbeat."""

    group_id: String = ""
    member_id: String = ""
    """Created by the member itself."""
    member_epoch: Int32 = 0
    """0 to join, -1 to leave."""
    rack_id: String | None = None
    subscribed_topic_names: Sequence[String] | None = None


@struct
class TopicPartitions:
    topic_id: Uuid = ZERO_UUID
    partitions: Sequence[Int32] = ()


@struct
class Assignment:
    topic_partitions: Sequence[TopicPartitions] = ()


@message(key=76, versions="1", flexible="0+")
class ShareGroupHeartbeatResponse(Message):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
    member_id: String | None = None
    member_epoch: Int32 = 0
    heartbeat_interval_ms: Int32 = 0
    assignment: Assignment | None = None
    """None if unchanged."""
