"""Vote: who would lead the metadata's log asks the voters for it, or first whether they would (KIP-595, KIP-996)."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.protocol.schema import (
    ZERO_UUID,
    Bool,
    Int16,
    Int32,
    Int64,
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
    replica_epoch: Int32 = 0
    """In which it would lead; where it asks first, the one it is in."""
    replica_id: Int32 = 0
    replica_directory_id: Uuid = since(1, default=ZERO_UUID, ignorable=True)
    voter_directory_id: Uuid = since(1, default=ZERO_UUID, ignorable=True)
    """Of who is asked."""
    last_offset_epoch: Int32 = 0
    last_offset: Int64 = 0
    """The end of its log, despite the name."""
    pre_vote: Bool = since(2, default=False)
    """Whether it asks first: the answer binds nobody."""


@struct
class RequestTopicData:
    topic_name: String = ""
    partitions: Sequence[RequestPartitionData] = ()


@message(key=52, versions="0-2", flexible="0+")
class VoteRequest(Message):
    cluster_id: String | None = None
    voter_id: Int32 = since(1, default=-1, ignorable=True)
    topics: Sequence[RequestTopicData] = ()


@struct
class PartitionData:
    partition_index: Int32 = 0
    error_code: Int16 = 0
    leader_id: Int32 = 0
    """-1 where none is known."""
    leader_epoch: Int32 = 0
    vote_granted: Bool = False


@struct
class TopicData:
    topic_name: String = ""
    partitions: Sequence[PartitionData] = ()


@struct
class NodeEndpoint:
    node_id: Int32 = 0
    host: String = ""
    port: UInt16 = 0


@message(key=52, versions="0-2", flexible="0+")
class VoteResponse(Message):
    error_code: Int16 = 0
    topics: Sequence[TopicData] = ()
    node_endpoints: Sequence[NodeEndpoint] = tagged(0, since=1, default=())
