"""DescribeQuorum: the voters and observers of the metadata log, with their progress (KIP-595)."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.protocol.schema import ZERO_UUID, Int16, Int32, Int64, Message, String, UInt16, Uuid, message, since, struct


@struct
class RequestPartitionData:
    partition_index: Int32 = 0


@struct
class RequestTopicData:
    topic_name: String = ""
    partitions: Sequence[RequestPartitionData] = ()


@message(key=55, versions="0-2", flexible="0+")
class DescribeQuorumRequest(Message):
    topics: Sequence[RequestTopicData] = ()


@struct
class ReplicaState:
    """The progress of a voter or observer; -1 if unknown."""

    replica_id: Int32 = 0
    replica_directory_id: Uuid = since(2, default=ZERO_UUID)
    log_end_offset: Int64 = 0
    last_fetch_timestamp: Int64 = since(1, default=-1, ignorable=True)
    last_caught_up_timestamp: Int64 = since(1, default=-1, ignorable=True)


@struct
class PartitionData:
    partition_index: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = since(2, default=None, ignorable=True)
    leader_id: Int32 = 0
    """-1 without a leader."""
    leader_epoch: Int32 = 0
    high_watermark: Int64 = 0
    current_voters: Sequence[ReplicaState] = ()
    observers: Sequence[ReplicaState] = ()


@struct
class TopicData:
    topic_name: String = ""
    partitions: Sequence[PartitionData] = ()


@struct
class Listener:
    name: String = ""
    host: String = ""
    port: UInt16 = 0


@struct
class Node:
    node_id: Int32 = 0
    listeners: Sequence[Listener] = ()


@message(key=55, versions="0-2", flexible="0+")
class DescribeQuorumResponse(Message):
    error_code: Int16 = 0
    error_message: String | None = since(2, default=None, ignorable=True)
    topics: Sequence[TopicData] = ()
    nodes: Sequence[Node] = since(2, default=())
