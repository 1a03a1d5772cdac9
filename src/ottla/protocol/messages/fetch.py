"""Fetch: read record batches from partitions; used by followers and consumers."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.protocol.schema import (
    ZERO_UUID,
    Int8,
    Int16,
    Int32,
    Int64,
    Message,
    Records,
    String,
    Uuid,
    message,
    since,
    struct,
    tagged,
)


@struct
class ReplicaState:
    """The follower's id; -1 for a consumer."""

    replica_id: Int32 = -1
    replica_epoch: Int64 = -1


@struct
class FetchPartition:
    partition: Int32 = 0
    current_leader_epoch: Int32 = since(9, default=-1, ignorable=True)
    fetch_offset: Int64 = 0
    last_fetched_epoch: Int32 = since(12, default=-1)
    log_start_offset: Int64 = since(5, default=-1, ignorable=True)
    """The follower's log start offset; -1 for a consumer."""
    partition_max_bytes: Int32 = 0
    replica_directory_id: Uuid = tagged(0, since=17, default=ZERO_UUID, ignorable=True)
    high_watermark: Int64 = tagged(1, since=18, default=2**63 - 1, ignorable=True)


@struct
class FetchTopic:
    """A topic by name up to v12, by id after."""

    topic: String = since(0, until=12, default="", ignorable=True)
    topic_id: Uuid = since(13, default=ZERO_UUID, ignorable=True)
    partitions: Sequence[FetchPartition] = ()


@struct
class ForgottenTopic:
    """Partitions to remove from the fetch session."""

    topic: String = since(7, until=12, default="", ignorable=True)
    topic_id: Uuid = since(13, default=ZERO_UUID, ignorable=True)
    partitions: Sequence[Int32] = ()


@message(key=1, versions="4-18", flexible="12+")
class FetchRequest(Message):
    cluster_id: String | None = tagged(0, since=12, default=None, ignorable=True)
    replica_id: Int32 = since(0, until=14, default=-1)
    replica_state: ReplicaState | None = tagged(1, since=15, default=None)
    max_wait_ms: Int32 = 0
    min_bytes: Int32 = 0
    max_bytes: Int32 = 2**31 - 1
    isolation_level: Int8 = 0
    """0 for read_uncommitted, 1 for read_committed."""
    session_id: Int32 = since(7, default=0, ignorable=True)
    session_epoch: Int32 = since(7, default=-1, ignorable=True)
    topics: Sequence[FetchTopic] = ()
    forgotten_topics_data: Sequence[ForgottenTopic] = since(7, default=())
    rack_id: String = since(11, default="", ignorable=True)


@struct
class EpochEndOffset:
    """The end of the last common epoch of both logs (KIP-595)."""

    epoch: Int32 = -1
    end_offset: Int64 = -1


@struct
class LeaderIdAndEpoch:
    leader_id: Int32 = -1
    leader_epoch: Int32 = -1


@struct
class SnapshotId:
    end_offset: Int64 = -1
    epoch: Int32 = -1


@struct
class AbortedTransaction:
    """An aborted transaction, for `read_committed`: skip this producer's records from the offset to its abort marker."""

    producer_id: Int64 = 0
    first_offset: Int64 = 0


@struct
class PartitionData:
    partition_index: Int32 = 0
    error_code: Int16 = 0
    high_watermark: Int64 = 0
    last_stable_offset: Int64 = -1
    log_start_offset: Int64 = since(5, default=-1, ignorable=True)
    diverging_epoch: EpochEndOffset | None = tagged(0, since=12, default=None)
    current_leader: LeaderIdAndEpoch | None = tagged(1, since=12, default=None)
    snapshot_id: SnapshotId | None = tagged(2, since=12, default=None)
    aborted_transactions: Sequence[AbortedTransaction] | None = None
    preferred_read_replica: Int32 = since(11, default=-1)
    records: Records | None = None


@struct
class FetchableTopicResponse:
    topic: String = since(0, until=12, default="", ignorable=True)
    topic_id: Uuid = since(13, default=ZERO_UUID, ignorable=True)
    partitions: Sequence[PartitionData] = ()


@struct
class NodeEndpoint:
    """The addresses of the leaders in the partitions."""

    node_id: Int32 = 0
    host: String = ""
    port: Int32 = 0
    rack: String | None = None


@message(key=1, versions="4-18", flexible="12+")
class FetchResponse(Message):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = since(7, default=0, ignorable=True)
    session_id: Int32 = since(7, default=0)
    responses: Sequence[FetchableTopicResponse] = ()
    node_endpoints: Sequence[NodeEndpoint] = tagged(0, since=16, default=())
