"""ListPartitionReassignments: list running moves of partitions (KIP-455)."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.protocol.schema import Int16, Int32, Message, String, message, struct


@struct
class ListPartitionReassignmentsTopics:
    name: String = ""
    partition_indexes: Sequence[Int32] = ()


@message(key=46, versions="0", flexible="0+")
class ListPartitionReassignmentsRequest(Message):
    timeout_ms: Int32 = 60_000
    topics: Sequence[ListPartitionReassignmentsTopics] | None = None
    """None requests every topic."""


@struct
class OngoingPartitionReassignment:
    partition_index: Int32 = 0
    replicas: Sequence[Int32] = ()
    adding_replicas: Sequence[Int32] = ()
    removing_replicas: Sequence[Int32] = ()


@struct
class OngoingTopicReassignment:
    name: String = ""
    partitions: Sequence[OngoingPartitionReassignment] = ()


@message(key=46, versions="0", flexible="0+")
class ListPartitionReassignmentsResponse(Message):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
    topics: Sequence[OngoingTopicReassignment] = ()
