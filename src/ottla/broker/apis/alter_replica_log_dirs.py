"""AlterReplicaLogDirs: move replicas to another directory of this broker, or choose the directory of future ones."""

from __future__ import annotations

import logging

from ottla.broker.metadata.placement import list_cordoned
from ottla.broker.network_server.call import Call
from ottla.broker.node import BrokerNode
from ottla.errors import ErrorCode, KafkaError
from ottla.model import TopicPartition
from ottla.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)
from ottla.storage.directory.data_directories import DataDirectories
from ottla.storage.directory.data_directory import DataDirectory
from ottla.storage.directory.future_logs import is_too_long

log = logging.getLogger(__name__)


def handle(node: BrokerNode, call: Call, request: AlterReplicaLogDirsRequest) -> AlterReplicaLogDirsResponse:
    """Start moves of replicas. Each partition has its own result; DescribeLogDirs shows the progress."""
    topics: dict[str, list[AlterReplicaLogDirPartitionResult]] = {}
    for wanted in request.dirs:
        for topic in wanted.topics:
            topics.setdefault(topic.name, []).extend(
                AlterReplicaLogDirPartitionResult(index, move_replica(node, wanted.path, topic.name, index))
                for index in topic.partitions
            )
    return AlterReplicaLogDirsResponse(
        results=[AlterReplicaLogDirTopicResult(name, results) for name, results in topics.items()]
    )


def move_replica(node: BrokerNode, path: str, topic: str, index: int) -> int:
    """Start the move of a replica to a directory. Return NONE, also if the replica is there already, or an error code."""
    directories, name = node.directory, TopicPartition(topic, index)
    home = next((each for each in directories.online() if str(each.path) == path), None)
    if is_too_long(name):
        return ErrorCode.INVALID_TOPIC_EXCEPTION
    if home is None:
        return ErrorCode.KAFKA_STORAGE_ERROR if path in directories.offline else ErrorCode.LOG_DIR_NOT_FOUND
    if home.directory_id in list_cordoned(node.config, directories):
        return ErrorCode.INVALID_REPLICA_ASSIGNMENT
    found = node.partitions.find(topic, index)
    if found is None:
        return record_directory(node, home, name)
    try:
        node.relocations.start_move(found, home)
    except KafkaError as failure:
        log.warning("cannot start to move %s to %s: %s", name, path, failure)
        return failure.code
    return ErrorCode.NONE


def record_directory(node: BrokerNode, home: DataDirectory, name: TopicPartition) -> int:
    """Remember the directory of a replica that does not exist yet."""
    if isinstance(node.directory, DataDirectories):
        node.directory.set_preferred_directory(name, home)
    known = node.topics.has_partition(name.topic, name.partition)
    return ErrorCode.REPLICA_NOT_AVAILABLE if known else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
