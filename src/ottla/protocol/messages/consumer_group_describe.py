"""ConsumerGroupDescribe: the state and the members of groups of KIP-848."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.protocol.messages.metadata import NO_OPERATIONS
from ottla.protocol.schema import (
    ZERO_UUID,
    Bool,
    Int8,
    Int16,
    Int32,
    Message,
    String,
    Uuid,
    message,
    part,
    since,
    struct,
)


@message(key=69, versions="0-1", flexible="0+")
class ConsumerGroupDescribeRequest(Message):
    group_ids: Sequence[String] = ()
    include_authorized_operations: Bool = False


@struct
class TopicPartitions:
    topic_id: Uuid = ZERO_UUID
    topic_name: String = ""
    partitions: Sequence[Int32] = ()


@struct
class Assignment:
    topic_partitions: Sequence[TopicPartitions] = ()


@struct
class Member:
    member_id: String = ""
    instance_id: String | None = None
    rack_id: String | None = None
    member_epoch: Int32 = 0
    client_id: String = ""
    client_host: String = ""
    subscribed_topic_names: Sequence[String] = ()
    subscribed_topic_regex: String | None = None
    assignment: Assignment = part(Assignment)
    target_assignment: Assignment = part(Assignment)
    member_type: Int8 = since(1, default=-1, ignorable=True)
    """0 for the classic protocol, 1 for KIP-848, -1 unknown."""


@struct
class DescribedGroup:
    error_code: Int16 = 0
    error_message: String | None = None
    group_id: String = ""
    group_state: String = ""
    group_epoch: Int32 = 0
    assignment_epoch: Int32 = 0
    assignor_name: String = ""
    members: Sequence[Member] = ()
    authorized_operations: Int32 = NO_OPERATIONS


@message(key=69, versions="0-1", flexible="0+")
class ConsumerGroupDescribeResponse(Message):
    throttle_time_ms: Int32 = 0
    groups: Sequence[DescribedGroup] = ()
