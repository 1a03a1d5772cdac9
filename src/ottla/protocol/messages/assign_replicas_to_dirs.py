"""AssignReplicasToDirs: a broker reports the log directories of its replicas to the controller (KIP-858)."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.protocol.schema import ZERO_UUID, Int16, Int32, Int64, Message, Uuid, message, struct


@struct
class RequestPartitionData:
    partition_index: Int32 = 0


@struct
class RequestTopicData:
    topic_id: Uuid = ZERO_UUID
    partitions: Sequence[RequestPartitionData] = ()


@struct
class RequestDirectoryData:
    id: Uuid = ZERO_UUID
    topics: Sequence[RequestTopicData] = ()


@message(key=73, versions="0", flexible="0+")
class AssignReplicasToDirsRequest(Message):
    broker_id: Int32 = 0
    broker_epoch: Int64 = -1
    directories: Sequence[RequestDirectoryData] = ()


@struct
class PartitionData:
    partition_index: Int32 = 0
    error_code: Int16 = 0


@struct
class TopicData:
    topic_id: Uuid = ZERO_UUID
    partitions: Sequence[PartitionData] = ()


@struct
class DirectoryData:
    id: Uuid = ZERO_UUID
    topics: Sequence[TopicData] = ()


@message(key=73, versions="0", flexible="0+")
class AssignReplicasToDirsResponse(Message):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    directories: Sequence[DirectoryData] = ()
