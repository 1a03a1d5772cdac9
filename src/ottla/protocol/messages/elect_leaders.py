"""ElectLeaders: elect other leaders of partitions (KIP-460)."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.protocol.schema import Int8, Int16, Int32, Message, String, message, since, struct


@struct
class TopicPartitions:
    topic: String = ""
    partitions: Sequence[Int32] = ()


@message(key=43, versions="0-2", flexible="2+")
class ElectLeadersRequest(Message):
    election_type: Int8 = since(1, default=0)
    """0 for the preferred replica, 1 for any online replica, which may lack records."""
    topic_partitions: Sequence[TopicPartitions] | None = ()
    """None means every partition."""
    timeout_ms: Int32 = 60_000


@struct
class PartitionResult:
    partition_id: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None


@struct
class ReplicaElectionResult:
    topic: String = ""
    partition_result: Sequence[PartitionResult] = ()


@message(key=43, versions="0-2", flexible="2+")
class ElectLeadersResponse(Message):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = since(1, default=0)
    replica_election_results: Sequence[ReplicaElectionResult] = ()
