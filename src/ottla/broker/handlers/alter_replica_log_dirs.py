"""AlterReplicaLogDirs: copies begin to move to another directory of this broker, or are to be made there."""

from __future__ import annotations

import logging

from ottla.broker.cluster.placement import cordoned
from ottla.broker.node import BrokerNode
from ottla.broker.requests.call import Call
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
    """Each partition has its own result; DescribeLogDirs tells how far a move is."""
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
    """Have a copy moved there; why that is not begun, NONE where it is, or where the copy is there."""
    directories, name = node.directory, TopicPartition(topic, index)
    home = next((each for each in directories.online() if str(each.path) == path), None)
    if is_too_long(name):
        return ErrorCode.INVALID_TOPIC_EXCEPTION
    if home is None:
        return ErrorCode.KAFKA_STORAGE_ERROR if path in directories.offline else ErrorCode.LOG_DIR_NOT_FOUND
    if home.directory_id in cordoned(node.config, directories):
        return ErrorCode.INVALID_REPLICA_ASSIGNMENT
    found = node.partitions.find(topic, index)
    if found is None:
        return note(node, home, name)
    try:
        node.relocations.move(found, home)
    except KafkaError as failure:
        log.warning("%s is not moved to %s: %s", name, path, failure)
        return failure.code
    return ErrorCode.NONE


def note(node: BrokerNode, home: DataDirectory, name: TopicPartition) -> int:
    """Remember where a copy is to be made that is not here yet."""
    if isinstance(node.directory, DataDirectories):
        node.directory.prefer(name, home)
    known = node.topics.has(name.topic, name.partition)
    return ErrorCode.REPLICA_NOT_AVAILABLE if known else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
