"""AlterReplicaLogDirs: a partition may move to the directory in which it is; there is no other."""

from __future__ import annotations

from ottla.broker.node import BrokerNode
from ottla.broker.requests.call import Call
from ottla.errors import ErrorCode
from ottla.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)


def handle(node: BrokerNode, call: Call, request: AlterReplicaLogDirsRequest) -> AlterReplicaLogDirsResponse:
    """Nothing moves; each partition has its own result."""
    topics: dict[str, list[AlterReplicaLogDirPartitionResult]] = {}
    for wanted in request.dirs:
        for topic in wanted.topics:
            topics.setdefault(topic.name, []).extend(
                AlterReplicaLogDirPartitionResult(index, error(node, wanted.path, topic.name, index))
                for index in topic.partitions
            )
    return AlterReplicaLogDirsResponse(
        results=[AlterReplicaLogDirTopicResult(name, results) for name, results in topics.items()]
    )


def error(node: BrokerNode, path: str, topic: str, index: int) -> int:
    """Why a partition cannot be in that directory; NONE where it is."""
    if path != str(node.directory.path):
        return ErrorCode.LOG_DIR_NOT_FOUND
    found = node.partitions.find(topic, index)
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if found is None else ErrorCode.NONE
