"""ConsumerGroupHeartbeat: join, stay in and leave a group with server-side assignment (KIP-848)."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.protocol.schema import ZERO_UUID, Int16, Int32, Message, String, Uuid, message, since, struct


@struct
class TopicPartitions:
    topic_id: Uuid = ZERO_UUID
    partitions: Sequence[Int32] = ()


@message(key=68, versions="0-1", flexible="0+")
class ConsumerGroupHeartbeatRequest(Message):
    """None, and -1 for times, mean: unchanged since the last heartbeat."""

    group_id: String = ""
    member_id: String = ""
    """Created by the member itself since v1 (KIP-1082)."""
    member_epoch: Int32 = 0
    """0 to join, -1 to leave, -2 to leave temporarily as a static member."""
    instance_id: String | None = None
    rack_id: String | None = None
    rebalance_timeout_ms: Int32 = -1
    subscribed_topic_names: Sequence[String] | None = None
    subscribed_topic_regex: String | None = since(1, default=None)
    server_assignor: String | None = None
    topic_partitions: Sequence[TopicPartitions] | None = None


@struct
class Assignment:
    topic_partitions: Sequence[TopicPartitions] = ()


@message(key=68, versions="0-1", flexible="0+")
class ConsumerGroupHeartbeatResponse(Message):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
    member_id: String | None = None
    member_epoch: Int32 = 0
    heartbeat_interval_ms: Int32 = 0
    assignment: Assignment | None = None
    """None if unchanged."""
