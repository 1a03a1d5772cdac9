"""The directories of brokers: which copies are where, and moved from one to another."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ottla.client.admin.admin_api_driver import AdminApiDriver, Question, each_broker, raise_first
from ottla.client.admin.group_offset_calls import by_topic
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
FAULTS = {
    ErrorCode.LOG_DIR_NOT_FOUND: "broker {broker} has no directory {path!r}",
    ErrorCode.REPLICA_NOT_AVAILABLE: "broker {broker} has no copy of {partition}",
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "broker {broker} has no copy of {partition}",
}


class LogDirCalls:
    """What an admin does with directories; `Admin` has the same names and says what they do."""

    def __init__(self, driver: AdminApiDriver) -> None:
        self._driver = driver

    def describe_log_dirs(
        self, broker_ids: Iterable[int] | None, timeout: float | None
    ) -> dict[int, dict[str, LogDirDescription]]:
        request = DescribeLogDirsRequest(None)
        if broker_ids is None:
            return self._driver.ask_each_broker(request, read_log_dirs, timeout)
        asked = [checked_broker(each) for each in checked_list("broker_ids", broker_ids, "[1, 2]")]
        question: Question[int, dict[str, LogDirDescription]] = Question(
            each_broker, lambda _: request, read_log_dirs, together=False
        )
        found, failed = self._driver.ask(question, asked, timeout)
        raise_first(failed)
        return found

    def describe_replica_log_dirs(
        self, replicas: Iterable[TopicPartitionReplica], timeout: float | None
    ) -> dict[TopicPartitionReplica, ReplicaLogDirInfo]:
        asked = [checked_replica(each) for each in checked_list("replicas", replicas, f"[{REPLICA}]")]
        wanted = by_broker(asked)

        def request(keys: list[int]) -> DescribeLogDirsRequest:
            return DescribeLogDirsRequest(
                [DescribableLogDirTopic(*each) for each in by_topic(map(partition_of, wanted[keys[0]])).items()]
            )

        question: Question[int, dict[str, LogDirDescription]] = Question(
            each_broker, request, read_log_dirs, together=False
        )
        found, failed = self._driver.ask(question, wanted, timeout)
        raise_first(failed)
        return {each: place_of(found[each.broker_id], partition_of(each)) for each in asked}

    def alter_replica_log_dirs(
        self, replica_assignment: Mapping[TopicPartitionReplica, str], timeout: float | None
    ) -> None:
        given = checked_dict("replica_assignment", replica_assignment, f"{{{REPLICA}: '/disk2/kafka'}}")
        wanted = {checked_replica(each): checked_text("the directory", path, "/disk2") for each, path in given.items()}

        def request(replicas: list[TopicPartitionReplica]) -> AlterReplicaLogDirsRequest:
            paths = dict.fromkeys(wanted[each] for each in replicas)
            return AlterReplicaLogDirsRequest(
                [
                    AlterReplicaLogDir(path, topics_of([each for each in replicas if wanted[each] == path]))
                    for path in paths
                ]
            )

        def read(replicas: list[TopicPartitionReplica], answer: Any) -> dict[TopicPartitionReplica, KafkaError | bool]:
            told = {
                TopicPartition(topic.topic_name, each.partition_index): each.error_code
                for topic in answer.results
                for each in topic.partitions
            }
            return {
                each: fault_of(told[partition_of(each)], each, wanted[each])
                for each in replicas
                if partition_of(each) in told
            }

        question: Question[TopicPartitionReplica, bool] = Question(its_broker, request, read)
        raise_first(self._driver.ask(question, wanted, timeout)[1])


def checked_replica(replica: Any) -> TopicPartitionReplica:
    if not isinstance(replica, TopicPartitionReplica):
        raise TypeError(f"{replica!r} is no copy of a partition: write {REPLICA}")
    topic, partition = checked_partition((replica.topic, replica.partition))
    return TopicPartitionReplica(topic, partition, checked_broker(replica.broker_id))


def partition_of(replica: TopicPartitionReplica) -> TopicPartition:
    return TopicPartition(replica.topic, replica.partition)


def by_broker(replicas: Iterable[TopicPartitionReplica]) -> dict[int, list[TopicPartitionReplica]]:
    found: dict[int, list[TopicPartitionReplica]] = {}
    for each in replicas:
        found.setdefault(each.broker_id, []).append(each)
    return found


def topics_of(replicas: list[TopicPartitionReplica]) -> list[AlterReplicaLogDirTopic]:
    return [AlterReplicaLogDirTopic(*each) for each in by_topic(map(partition_of, replicas)).items()]


def its_broker(
    driver: AdminApiDriver, replicas: list[TopicPartitionReplica], deadline: Deadline
) -> Mapping[TopicPartitionReplica, Node | KafkaError]:
    """The broker that has a copy, or shall have it."""
    brokers = each_broker(driver, [each.broker_id for each in replicas], deadline)
    return {each: brokers[each.broker_id] for each in replicas}


def place_of(directories: Mapping[str, LogDirDescription], partition: TopicPartition) -> ReplicaLogDirInfo:
    """Where one copy is, and where it is on its way to."""
    now: tuple[str | None, int] = (None, -1)
    later = now
    for path, directory in directories.items():
        info = directory.replica_infos.get(partition)
        if info is not None and info.is_future:
            later = (path, info.offset_lag)
        elif info is not None:
            now = (path, info.offset_lag)
    return ReplicaLogDirInfo(*now, *later)


def fault_of(code: int, replica: TopicPartitionReplica, path: str) -> KafkaError | bool:
    """What a code says of a copy; True where nothing is wrong."""
    if not code:
        return True
    text = FAULTS.get(ErrorCode(code), "the copy of {partition} on broker {broker}")
    return error_for(code, text.format(broker=replica.broker_id, partition=partition_of(replica), path=path))


def read_log_dirs(brokers: list[int], answer: Any) -> Mapping[int, dict[str, LogDirDescription] | KafkaError]:
    """The directories of one broker; one that is offline is an error that names it, if there is no other."""
    (broker,) = brokers
    if answer.error_code:
        return {broker: error_for(answer.error_code, f"the directories of broker {broker}")}
    faults = {
        each.log_dir: error_for(each.error_code, f"directory {each.log_dir} of broker {broker}")
        for each in answer.results
        if each.error_code
    }
    for fault in faults.values():
        if fault.code != ErrorCode.KAFKA_STORAGE_ERROR or len(faults) == len(answer.results):
            return {broker: fault}
    return {broker: {each.log_dir: described(each, faults.get(each.log_dir)) for each in answer.results}}


def described(answer: Any, error: KafkaError | None) -> LogDirDescription:
    replicas = {
        TopicPartition(topic.name, each.partition_index): ReplicaInfo(
            each.partition_size, each.offset_lag, each.is_future_key
        )
        for topic in answer.topics
        for each in topic.partitions
    }
    total, usable = (None if bytes_ < 0 else bytes_ for bytes_ in (answer.total_bytes, answer.usable_bytes))
    return LogDirDescription(replicas, total, usable, answer.is_cordoned, error)
