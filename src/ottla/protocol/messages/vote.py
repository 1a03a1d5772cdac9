"""Vote: a candidate for the leader of the metadata log requests votes, or pre-votes (KIP-595, KIP-996)."""

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
    """The epoch in which it would lead; in a pre-vote its current one."""
    replica_id: Int32 = 0
    replica_directory_id: Uuid = since(1, default=ZERO_UUID, ignorable=True)
    voter_directory_id: Uuid = since(1, default=ZERO_UUID, ignorable=True)
    """The receiver's directory id."""
    last_offset_epoch: Int32 = 0
    last_offset: Int64 = 0
    """The end of its log, despite the name."""
    pre_vote: Bool = since(2, default=False)
    """True for a pre-vote, which does not bind the voter (KIP-996)."""


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
    """-1 if unknown."""
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
