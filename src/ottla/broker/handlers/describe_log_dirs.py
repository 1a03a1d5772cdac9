"""DescribeLogDirs: the directories of this broker, their partitions and their sizes, and how much room there is."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Iterable

from ottla.broker.cluster.placement import cordoned
from ottla.broker.node import BrokerNode
from ottla.broker.partitions.partition import Partition
from ottla.broker.partitions.relocation import Relocation
from ottla.broker.requests.call import Call
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
    """Partitions that are not here are left out; of a directory that is offline there is its error alone."""
    found: dict[DataDirectory, list[Partition]] = {each: [] for each in node.directory.online()}
    coming: dict[DataDirectory, list[Relocation]] = {each: [] for each in found}
    for partition in wanted(node, request):
        try:
            found[node.directory.place(partition.topic_partition)].append(partition)
        except KafkaError:
            continue  # It is where nobody can look.
        move = node.relocations.of(partition.topic_partition)
        if move is not None and move.home in coming:
            coming[move.home].append(move)
    closed = cordoned(node.config, node.directory)
    results = [
        described(directory, partitions, coming[directory], directory.directory_id in closed)
        for directory, partitions in found.items()
    ]
    return DescribeLogDirsResponse(results=[*results, *map(unseen, node.directory.offline)])


def described(
    directory: DataDirectory, partitions: Iterable[Partition], coming: Iterable[Relocation], is_cordoned: bool
) -> DescribeLogDirsResult:
    path = str(directory.path)
    try:
        volume = shutil.disk_usage(path)
        topics = sizes(directory, partitions, coming)
    except OSError as error:
        log.error("cannot look into %s: %s", path, error)
        return unseen(path)
    return DescribeLogDirsResult(
        log_dir=path,
        topics=topics,
        total_bytes=volume.total,
        usable_bytes=volume.free,
        is_cordoned=is_cordoned,
    )


def unseen(path: str) -> DescribeLogDirsResult:
    return DescribeLogDirsResult(ErrorCode.KAFKA_STORAGE_ERROR, path)


def wanted(node: BrokerNode, request: DescribeLogDirsRequest) -> Iterable[Partition]:
    """The partitions that are asked for."""
    if request.topics is None:
        return node.partitions
    found = (node.partitions.find(topic.topic, index) for topic in request.topics for index in topic.partitions)
    # A set that keeps the order: a partition named twice is described once.
    return dict.fromkeys(partition for partition in found if partition is not None)


def sizes(
    directory: DataDirectory, partitions: Iterable[Partition], coming: Iterable[Relocation]
) -> list[DescribeLogDirsTopic]:
    """Partitions with their sizes, by topic; those last that are on their way here."""
    topics: dict[str, list[DescribeLogDirsPartition]] = {}
    for partition in partitions:
        name, index = partition.topic_partition
        topics.setdefault(name, []).append(DescribeLogDirsPartition(index, size_of(directory, partition)))
    for move in coming:
        name, index = move.partition.topic_partition
        future = DescribeLogDirsPartition(index, move.size_bytes, max(move.lag, 0), is_future_key=True)
        topics.setdefault(name, []).append(future)
    return [DescribeLogDirsTopic(name, described) for name, described in topics.items()]


def size_of(directory: DataDirectory, partition: Partition) -> int:
    """Bytes of records; a log that nobody has used yet is not opened for this."""
    opened = partition.opened_log
    return stored_bytes(directory.folder(partition.topic_partition)) if opened is None else opened.size_bytes
