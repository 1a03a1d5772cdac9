"""DescribeLogDirs: the log directories of this broker, their partitions and sizes, and the room on their volumes."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Iterable

from ottla.broker.metadata.placement import list_cordoned
from ottla.broker.network_server.call import Call
from ottla.broker.node import BrokerNode
from ottla.broker.replica_manager.log_dir_move import Relocation
from ottla.broker.replica_manager.partition import Partition
from ottla.errors import ErrorCode, KafkaError
from ottla.protocol.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from ottla.storage.directory.data_directory import DataDirectory
from ottla.storage.segments.log_folder import stored_bytes

log = logging.getLogger(__name__)


def handle(node: BrokerNode, call: Call, request: DescribeLogDirsRequest) -> DescribeLogDirsResponse:
    """Describe each directory. Unknown partitions are omitted; an offline directory has only an error."""
    found: dict[DataDirectory, list[Partition]] = {each: [] for each in node.directory.online()}
    coming: dict[DataDirectory, list[Relocation]] = {each: [] for each in found}
    for partition in list_partitions(node, request):
        try:
            found[node.directory.place(partition.topic_partition)].append(partition)
        except KafkaError:
            continue  # It is on an offline directory.
        move = node.relocations.find_move(partition.topic_partition)
        if move is not None and move.home in coming:
            coming[move.home].append(move)
    closed = list_cordoned(node.config, node.directory)
    results = [
        describe_directory(directory, partitions, coming[directory], directory.directory_id in closed)
        for directory, partitions in found.items()
    ]
    return DescribeLogDirsResponse(results=[*results, *map(build_offline_result, node.directory.offline)])


def describe_directory(
    directory: DataDirectory, partitions: Iterable[Partition], coming: Iterable[Relocation], is_cordoned: bool
) -> DescribeLogDirsResult:
    path = str(directory.path)
    try:
        volume = shutil.disk_usage(path)
        topics = list_topics(directory, partitions, coming)
    except OSError as error:
        log.error("cannot read the log directory %s: %s", path, error)
        return build_offline_result(path)
    return DescribeLogDirsResult(
        log_dir=path,
        topics=topics,
        total_bytes=volume.total,
        usable_bytes=volume.free,
        is_cordoned=is_cordoned,
    )


def build_offline_result(path: str) -> DescribeLogDirsResult:
    return DescribeLogDirsResult(ErrorCode.KAFKA_STORAGE_ERROR, path)


def list_partitions(node: BrokerNode, request: DescribeLogDirsRequest) -> Iterable[Partition]:
    if request.topics is None:
        return node.partitions
    found = (node.partitions.find(topic.topic, index) for topic in request.topics for index in topic.partitions)
    # A set that keeps the order: a partition named twice is described once.
    return dict.fromkeys(partition for partition in found if partition is not None)


def list_topics(
    directory: DataDirectory, partitions: Iterable[Partition], coming: Iterable[Relocation]
) -> list[DescribeLogDirsTopic]:
    """Return partitions with their sizes, by topic; those that are being moved here are last."""
    topics: dict[str, list[DescribeLogDirsPartition]] = {}
    for partition in partitions:
        name, index = partition.topic_partition
        topics.setdefault(name, []).append(DescribeLogDirsPartition(index, find_size(directory, partition)))
    for move in coming:
        name, index = move.partition.topic_partition
        future = DescribeLogDirsPartition(index, move.size_bytes, max(move.lag, 0), is_future_key=True)
        topics.setdefault(name, []).append(future)
    return [DescribeLogDirsTopic(name, described) for name, described in topics.items()]


def find_size(directory: DataDirectory, partition: Partition) -> int:
    """Return the bytes of records. A log that was not used yet is not opened for this."""
    opened = partition.opened_log
    return stored_bytes(directory.folder(partition.topic_partition)) if opened is None else opened.size_bytes
