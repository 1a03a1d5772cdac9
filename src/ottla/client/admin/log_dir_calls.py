"""Describe the log directories of brokers, and move replicas between them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ottla.client.admin.admin_api_driver import AdminApiDriver, AdminQuery, lookup_each_broker, raise_first
from ottla.client.admin.group_offset_calls import group_by_topic
from ottla.client.admin.partition import LogDirDescription, ReplicaInfo, ReplicaLogDirInfo, TopicPartitionReplica
from ottla.client.interface.arguments import checked_broker, checked_dict, checked_list, checked_partition, checked_text
from ottla.client.runtime.deadline import Deadline
from ottla.errors import ErrorCode, KafkaError, error_for
from ottla.model import Node, TopicPartition
from ottla.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from ottla.protocol.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest

REPLICA = "TopicPartitionReplica('flights', 0, 1)"
ERROR_TEXTS = {
    ErrorCode.LOG_DIR_NOT_FOUND: "broker {broker} has no log directory {path!r}",
    ErrorCode.REPLICA_NOT_AVAILABLE: "broker {broker} has no replica of {partition}",
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "broker {broker} has no replica of {partition}",
}


class LogDirCalls:
    """Implements the log directory methods of `Admin`, which documents them."""

    def __init__(self, driver: AdminApiDriver) -> None:
        self._driver = driver

    def describe_log_dirs(
        self, broker_ids: Iterable[int] | None, timeout: float | None
    ) -> dict[int, dict[str, LogDirDescription]]:
        request = DescribeLogDirsRequest(None)
        if broker_ids is None:
            return self._driver.query_each_broker(request, read_log_dirs, timeout)
        requested = [checked_broker(each) for each in checked_list("broker_ids", broker_ids, "[1, 2]")]
        query: AdminQuery[int, dict[str, LogDirDescription]] = AdminQuery(
            lookup_each_broker, lambda _: request, read_log_dirs, can_batch=False
        )
        found, failed = self._driver.run_query(query, requested, timeout)
        raise_first(failed)
        return found

    def describe_replica_log_dirs(
        self, replicas: Iterable[TopicPartitionReplica], timeout: float | None
    ) -> dict[TopicPartitionReplica, ReplicaLogDirInfo]:
        requested = [checked_replica(each) for each in checked_list("replicas", replicas, f"[{REPLICA}]")]
        wanted = replicas_by_broker(requested)

        def request(keys: list[int]) -> DescribeLogDirsRequest:
            return DescribeLogDirsRequest(
                [DescribableLogDirTopic(*each) for each in group_by_topic(map(partition_of, wanted[keys[0]])).items()]
            )

        query: AdminQuery[int, dict[str, LogDirDescription]] = AdminQuery(
            lookup_each_broker, request, read_log_dirs, can_batch=False
        )
        found, failed = self._driver.run_query(query, wanted, timeout)
        raise_first(failed)
        return {each: find_replica(found[each.broker_id], partition_of(each)) for each in requested}

    def alter_replica_log_dirs(
        self, replica_assignment: Mapping[TopicPartitionReplica, str], timeout: float | None
    ) -> None:
        given = checked_dict("replica_assignment", replica_assignment, f"{{{REPLICA}: '/disk2/kafka'}}")
        wanted = {checked_replica(each): checked_text("the directory", path, "/disk2") for each, path in given.items()}

        def request(replicas: list[TopicPartitionReplica]) -> AlterReplicaLogDirsRequest:
            paths = dict.fromkeys(wanted[each] for each in replicas)
            return AlterReplicaLogDirsRequest(
                [
                    AlterReplicaLogDir(path, encode_topics([each for each in replicas if wanted[each] == path]))
                    for path in paths
                ]
            )

        def read(
            replicas: list[TopicPartitionReplica], response: Any
        ) -> dict[TopicPartitionReplica, KafkaError | bool]:
            results = {
                TopicPartition(topic.topic_name, each.partition_index): each.error_code
                for topic in response.results
                for each in topic.partitions
            }
            return {
                each: replica_error(results[partition_of(each)], each, wanted[each])
                for each in replicas
                if partition_of(each) in results
            }

        query: AdminQuery[TopicPartitionReplica, bool] = AdminQuery(lookup_replica_broker, request, read)
        raise_first(self._driver.run_query(query, wanted, timeout)[1])


def checked_replica(replica: Any) -> TopicPartitionReplica:
    if not isinstance(replica, TopicPartitionReplica):
        raise TypeError(f"{replica!r} is not a replica: write {REPLICA}")
    topic, partition = checked_partition((replica.topic, replica.partition))
    return TopicPartitionReplica(topic, partition, checked_broker(replica.broker_id))


def partition_of(replica: TopicPartitionReplica) -> TopicPartition:
    return TopicPartition(replica.topic, replica.partition)


def replicas_by_broker(replicas: Iterable[TopicPartitionReplica]) -> dict[int, list[TopicPartitionReplica]]:
    found: dict[int, list[TopicPartitionReplica]] = {}
    for each in replicas:
        found.setdefault(each.broker_id, []).append(each)
    return found


def encode_topics(replicas: list[TopicPartitionReplica]) -> list[AlterReplicaLogDirTopic]:
    return [AlterReplicaLogDirTopic(*each) for each in group_by_topic(map(partition_of, replicas)).items()]


def lookup_replica_broker(
    driver: AdminApiDriver, replicas: list[TopicPartitionReplica], deadline: Deadline
) -> Mapping[TopicPartitionReplica, Node | KafkaError]:
    """Look up the broker of each replica."""
    brokers = lookup_each_broker(driver, [each.broker_id for each in replicas], deadline)
    return {each: brokers[each.broker_id] for each in replicas}


def find_replica(directories: Mapping[str, LogDirDescription], partition: TopicPartition) -> ReplicaLogDirInfo:
    """Return the directory of one replica, and the directory it is moving to."""
    current: tuple[str | None, int] = (None, -1)
    future = current
    for path, directory in directories.items():
        info = directory.replica_infos.get(partition)
        if info is not None and info.is_future:
            future = (path, info.offset_lag)
        elif info is not None:
            current = (path, info.offset_lag)
    return ReplicaLogDirInfo(*current, *future)


def replica_error(code: int, replica: TopicPartitionReplica, path: str) -> KafkaError | bool:
    """Return the error for a code of one replica; True if there is none."""
    if not code:
        return True
    text = ERROR_TEXTS.get(ErrorCode(code), "the replica of {partition} on broker {broker}")
    return error_for(code, text.format(broker=replica.broker_id, partition=partition_of(replica), path=path))


def read_log_dirs(brokers: list[int], response: Any) -> Mapping[int, dict[str, LogDirDescription] | KafkaError]:
    """Return the directories of one broker. An offline directory is an error only if all are offline."""
    (broker,) = brokers
    if response.error_code:
        return {broker: error_for(response.error_code, f"the directories of broker {broker}")}
    faults = {
        each.log_dir: error_for(each.error_code, f"directory {each.log_dir} of broker {broker}")
        for each in response.results
        if each.error_code
    }
    for fault in faults.values():
        if fault.code != ErrorCode.KAFKA_STORAGE_ERROR or len(faults) == len(response.results):
            return {broker: fault}
    return {broker: {each.log_dir: parse_log_dir(each, faults.get(each.log_dir)) for each in response.results}}


def parse_log_dir(response: Any, error: KafkaError | None) -> LogDirDescription:
    replicas = {
        TopicPartition(topic.name, each.partition_index): ReplicaInfo(
            each.partition_size, each.offset_lag, each.is_future_key
        )
        for topic in response.topics
        for each in topic.partitions
    }
    total, usable = (None if bytes_ < 0 else bytes_ for bytes_ in (response.total_bytes, response.usable_bytes))
    return LogDirDescription(replicas, total, usable, response.is_cordoned, error)
