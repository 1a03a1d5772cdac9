"""EndQuorumEpoch: a leader that resigns notifies the other voters, with its preferred successors (KIP-595)."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.protocol.messages.begin_quorum_epoch import LeaderEndpoint, NodeEndpoint, TopicData
from ottla.protocol.schema import ZERO_UUID, Int16, Int32, Message, String, Uuid, message, since, struct, tagged


@struct
class ReplicaInfo:
    """A voter that may become the next leader."""

    candidate_id: Int32 = 0
    candidate_directory_id: Uuid = since(1, default=ZERO_UUID)


@struct
class RequestPartitionData:
    partition_index: Int32 = 0
    leader_id: Int32 = 0
    leader_epoch: Int32 = 0
    preferred_successors: Sequence[Int32] = since(0, until=0, default=(), ignorable=True)
    preferred_candidates: Sequence[ReplicaInfo] = since(1, default=(), ignorable=True)
    """The voter with the longest log first."""


@struct
class RequestTopicData:
    topic_name: String = ""
    partitions: Sequence[RequestPartitionData] = ()


@message(key=54, versions="0-1", flexible="1+")
class EndQuorumEpochRequest(Message):
    cluster_id: String | None = None
    topics: Sequence[RequestTopicData] = ()
    leader_endpoints: Sequence[LeaderEndpoint] = since(1, default=(), ignorable=True)


@message(key=54, versions="0-1", flexible="1+")
class EndQuorumEpochResponse(Message):
    error_code: Int16 = 0
    topics: Sequence[TopicData] = ()
    node_endpoints: Sequence[NodeEndpoint] = tagged(0, since=1, default=())
