"""ShareGroupDescribe: the state and the members of share groups (KIP-932)."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.protocol.messages.metadata import NO_OPERATIONS
from ottla.protocol.schema import ZERO_UUID, Bool, Int16, Int32, Message, String, Uuid, message, part, struct


@message(key=77, versions="1", flexible="0+")
class ShareGroupDescribeRequest(Message):
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
    rack_id: String | None = None
    member_epoch: Int32 = 0
    client_id: String = ""
    client_host: String = ""
    subscribed_topic_names: Sequence[String] = ()
    assignment: Assignment = part(Assignment)


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


@message(key=77, versions="1", flexible="0+")
class ShareGroupDescribeResponse(Message):
    throttle_time_ms: Int32 = 0
    groups: Sequence[DescribedGroup] = ()
