"""CreatePartitions: add partitions to topics."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.protocol.schema import Bool, Int16, Int32, Message, String, message, struct


@struct
class CreatePartitionsAssignment:
    """The replicas of a new partition, the preferred leader first."""

    broker_ids: Sequence[Int32] = ()


@struct
class CreatePartitionsTopic:
    name: String = ""
    count: Int32 = 0
    """The new total number of partitions."""
    assignments: Sequence[CreatePartitionsAssignment] | None = None
    """One for each new partition, or None to let the cluster choose."""


@message(key=37, versions="0-3", flexible="2+")
class CreatePartitionsRequest(Message):
    topics: Sequence[CreatePartitionsTopic] = ()
    timeout_ms: Int32 = 0
    validate_only: Bool = False


@struct
class CreatePartitionsTopicResult:
    name: String = ""
    error_code: Int16 = 0
    error_message: String | None = None


@message(key=37, versions="0-3", flexible="2+")
class CreatePartitionsResponse(Message):
    throttle_time_ms: Int32 = 0
    results: Sequence[CreatePartitionsTopicResult] = ()
