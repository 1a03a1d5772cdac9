"""FetchSnapshot: read a part of a metadata snapshot by its position in the file (KIP-630)."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.protocol.schema import (
    ZERO_UUID,
    Int16,
    Int32,
    Int64,
    Message,
    Records,
    String,
    UInt16,
    Uuid,
    message,
    part,
    since,
    struct,
    tagged,
)


@struct
class SnapshotId:
    """The id of a snapshot: its end offset, and the epoch of its last record."""

    end_offset: Int64 = 0
    epoch: Int32 = 0


@struct
class RequestPartitionSnapshot:
    partition: Int32 = 0
    current_leader_epoch: Int32 = 0
    snapshot_id: SnapshotId = part(SnapshotId)
    position: Int64 = 0
    replica_directory_id: Uuid = tagged(0, since=1, default=ZERO_UUID, ignorable=True)


@struct
class RequestTopicSnapshot:
    name: String = ""
    partitions: Sequence[RequestPartitionSnapshot] = ()


@message(key=59, versions="0-1", flexible="0+")
class FetchSnapshotRequest(Message):
    cluster_id: String | None = tagged(0, since=0, default=None)
    replica_id: Int32 = -1
    max_bytes: Int32 = 0x7FFFFFFF
    topics: Sequence[RequestTopicSnapshot] = ()


@struct
class LeaderIdAndEpoch:
    leader_id: Int32 = 0
    leader_epoch: Int32 = 0


@struct
class PartitionSnapshot:
    """A part of the file; it may end within a batch."""

    index: Int32 = 0
    error_code: Int16 = 0
    snapshot_id: SnapshotId = part(SnapshotId)
    current_leader: LeaderIdAndEpoch | None = tagged(0, since=0, default=None)
    size: Int64 = 0
    """The size of the whole snapshot."""
    position: Int64 = 0
    unaligned_records: Records = b""


@struct
class TopicSnapshot:
    name: String = ""
    partitions: Sequence[PartitionSnapshot] = ()


@struct
class NodeEndpoint:
    node_id: Int32 = 0
    host: String = ""
    port: UInt16 = 0


@message(key=59, versions="0-1", flexible="0+")
class FetchSnapshotResponse(Message):
    throttle_time_ms: Int32 = since(0, default=0, ignorable=True)
    error_code: Int16 = 0
    topics: Sequence[TopicSnapshot] = ()
    node_endpoints: Sequence[NodeEndpoint] = tagged(0, since=1, default=())
