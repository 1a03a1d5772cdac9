"""AlterReplicaLogDirs: move a broker's replicas to another log directory (KIP-113)."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.protocol.schema import Int16, Int32, Message, String, message, struct


@struct
class AlterReplicaLogDirTopic:
    name: String = ""
    partitions: Sequence[Int32] = ()


@struct
class AlterReplicaLogDir:
    path: String = ""
    topics: Sequence[AlterReplicaLogDirTopic] = ()
    """The replicas to move to this directory."""


@message(key=34, versions="1-2", flexible="2+")
class AlterReplicaLogDirsRequest(Message):
    dirs: Sequence[AlterReplicaLogDir] = ()


@struct
class AlterReplicaLogDirPartitionResult:
    partition_index: Int32 = 0
    error_code: Int16 = 0


@struct
class AlterReplicaLogDirTopicResult:
    topic_name: String = ""
    partitions: Sequence[AlterReplicaLogDirPartitionResult] = ()


@message(key=34, versions="1-2", flexible="2+")
class AlterReplicaLogDirsResponse(Message):
    throttle_time_ms: Int32 = 0
    results: Sequence[AlterReplicaLogDirTopicResult] = ()
