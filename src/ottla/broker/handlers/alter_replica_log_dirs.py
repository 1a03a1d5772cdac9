"""AlterReplicaLogDirs: a partition may be in the directory in which it is; between those of a broker none moves."""

from __future__ import annotations

from ottla.broker.node import BrokerNode
from ottla.broker.requests.call import Call
from ottla.errors import ErrorCode, KafkaError
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
    if path not in (str(each.path) for each in node.directory.online()):
        return ErrorCode.LOG_DIR_NOT_FOUND
    found = node.partitions.find(topic, index)
    if found is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    try:
        home = node.directory.place(found.topic_partition)
    except KafkaError as failure:
        return failure.code
    return ErrorCode.NONE if str(home.path) == path else ErrorCode.LOG_DIR_NOT_FOUND
