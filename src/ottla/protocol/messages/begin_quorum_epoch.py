"""BeginQuorumEpoch: a new leader of the metadata log notifies the other voters, until they fetch (KIP-595)."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.protocol.schema import (
    ZERO_UUID,
    Int16,
    Int32,
    Message,
    String,
    UInt16,
    Uuid,
    message,
    since,
    struct,
    tagged,
)


@struct
class RequestPartitionData:
    partition_index: Int32 = 0
    voter_directory_id: Uuid = since(1, default=ZERO_UUID, ignorable=True)
    """The receiver's directory id."""
    leader_id: Int32 = 0
    leader_epoch: Int32 = 0


@struct
class RequestTopicData:
    topic_name: String = ""
    partitions: Sequence[RequestPartitionData] = ()


@struct
class LeaderEndpoint:
    name: String = ""
    host: String = ""
    port: UInt16 = 0


@message(key=53, versions="0-1", flexible="1+")
class BeginQuorumEpochRequest(Message):
    cluster_id: String | None = None
    voter_id: Int32 = since(1, default=-1, ignorable=True)
    topics: Sequence[RequestTopicData] = ()
    leader_endpoints: Sequence[LeaderEndpoint] = since(1, default=(), ignorable=True)


@struct
class PartitionData:
    partition_index: Int32 = 0
    error_code: Int16 = 0
    leader_id: Int32 = 0
    """-1 if unknown."""
    leader_epoch: Int32 = 0


@struct
class TopicData:
    topic_name: String = ""
    partitions: Sequence[PartitionData] = ()


@struct
class NodeEndpoint:
    node_id: Int32 = 0
    host: String = ""
    port: UInt16 = 0


@message(key=53, versions="0-1", flexible="1+")
class BeginQuorumEpochResponse(Message):
    error_code: Int16 = 0
    topics: Sequence[TopicData] = ()
    node_endpoints: Sequence[NodeEndpoint] = tagged(0, since=1, default=())
