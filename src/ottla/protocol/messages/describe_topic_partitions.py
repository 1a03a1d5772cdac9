"""DescribeTopicPartitions: topics by name, page by page (KIP-966)."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.protocol.messages.metadata import NO_OPERATIONS
from ottla.protocol.schema import ZERO_UUID, Bool, Int16, Int32, Message, String, Uuid, message, struct


@struct
class TopicRequest:
    name: String = ""


@struct
class Cursor:
    topic_name: String = ""
    partition_index: Int32 = 0


@message(key=75, versions="0", flexible="0+")
class DescribeTopicPartitionsRequest(Message):
    topics: Sequence[TopicRequest] = ()
    """An empty list requests every topic."""
    response_partition_limit: Int32 = 2000
    cursor: Cursor | None = None


@struct
class DescribeTopicPartitionsResponsePartition:
    error_code: Int16 = 0
    partition_index: Int32 = 0
    leader_id: Int32 = 0
    leader_epoch: Int32 = -1
    replica_nodes: Sequence[Int32] = ()
    isr_nodes: Sequence[Int32] = ()
    eligible_leader_replicas: Sequence[Int32] | None = None
    last_known_elr: Sequence[Int32] | None = None
    offline_replicas: Sequence[Int32] = ()


@struct
class DescribeTopicPartitionsResponseTopic:
    error_code: Int16 = 0
    name: String | None = ""
    topic_id: Uuid = ZERO_UUID
    is_internal: Bool = False
    partitions: Sequence[DescribeTopicPartitionsResponsePartition] = ()
    topic_authorized_operations: Int32 = NO_OPERATIONS


@message(key=75, versions="0", flexible="0+")
class DescribeTopicPartitionsResponse(Message):
    throttle_time_ms: Int32 = 0
    topics: Sequence[DescribeTopicPartitionsResponseTopic] = ()
    next_cursor: Cursor | None = None
    """None on the last page."""
