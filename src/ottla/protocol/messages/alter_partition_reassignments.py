"""AlterPartitionReassignments: move partitions to other brokers, or cancel moves (KIP-455)."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.protocol.schema import Bool, Int16, Int32, Message, String, message, since, struct


@struct
class ReassignablePartition:
    partition_index: Int32 = 0
    replicas: Sequence[Int32] | None = None
    """None cancels a running reassignment."""


@struct
class ReassignableTopic:
    name: String = ""
    partitions: Sequence[ReassignablePartition] = ()


@message(key=45, versions="0-1", flexible="0+")
class AlterPartitionReassignmentsRequest(Message):
    timeout_ms: Int32 = 60_000
    allow_replication_factor_change: Bool = since(1, default=True)
    """KIP-860."""
    topics: Sequence[ReassignableTopic] = ()


@struct
class ReassignablePartitionResponse:
    partition_index: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None


@struct
class ReassignableTopicResponse:
    name: String = ""
    partitions: Sequence[ReassignablePartitionResponse] = ()


@message(key=45, versions="0-1", flexible="0+")
class AlterPartitionReassignmentsResponse(Message):
    throttle_time_ms: Int32 = 0
    allow_replication_factor_change: Bool = since(1, default=True, ignorable=True)
    error_code: Int16 = 0
    error_message: String | None = None
    responses: Sequence[ReassignableTopicResponse] = ()
