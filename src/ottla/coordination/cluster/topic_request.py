"""What to answer to a wish for one topic, and the records that make it true. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple
from uuid import UUID

from ottla.coordination.cluster import topic_configs, topic_names
from ottla.coordination.cluster.records import TOPIC_RESOURCE, ConfigRecord, PartitionRecord, TopicRecord
from ottla.coordination.cluster.topic import ANY_DIRECTORY
from ottla.coordination.cluster.topic_configs import Setting
from ottla.errors import ErrorCode
from ottla.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfigs, CreatableTopicResult
from ottla.protocol.schema import Message

BROKERS = 1
"""As many copies as a partition can have."""
MOST_PARTITIONS = 10_000
"""For one topic of one request, as in Kafka."""


class Refusal(Exception):
    """Why a topic cannot be made, or made different."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class ReplicaLayout(NamedTuple):
    """How many partitions, in how many copies."""

    partitions: int
    copies: int


def check_name(topic: CreatableTopic, existing: Mapping[str, str]) -> None:
    """Refuse names that cannot be, are there, or cannot be told apart; `existing` has names by how they fold."""
    fault = topic_names.fault_of(topic.name)
    if fault:
        raise Refusal(ErrorCode.INVALID_TOPIC_EXCEPTION, fault)
    other = existing.get(topic_names.folded(topic.name))
    if other == topic.name:
        raise Refusal(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{topic.name}' already exists.")
    if other is not None:
        raise Refusal(
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            f"'{topic.name}' and the topic '{other}' differ only in '.' and '_', which metrics write alike",
        )


def layout_of(topic: CreatableTopic, node_id: int, default_partitions: int, default_copies: int) -> ReplicaLayout:
    """How the topic is laid out on the one broker that there is."""
    if topic.assignments:
        return assigned_layout(topic, node_id)
    partitions = default_partitions if topic.num_partitions == -1 else topic.num_partitions
    if partitions <= 0:
        raise Refusal(
            ErrorCode.INVALID_PARTITIONS, f"{partitions} partitions: at least one, or -1 for the broker's default"
        )
    if partitions > MOST_PARTITIONS:
        raise Refusal(
            ErrorCode.INVALID_PARTITIONS, f"{partitions} partitions: at most {MOST_PARTITIONS} are made at once"
        )
    copies = min(default_copies, BROKERS) if topic.replication_factor == -1 else topic.replication_factor
    if copies <= 0:
        raise Refusal(
            ErrorCode.INVALID_REPLICATION_FACTOR, f"{copies} replicas: at least one, or -1 for the broker's default"
        )
    if copies > BROKERS:
        raise Refusal(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"{copies} replicas: the cluster has {BROKERS} broker, and each holds one at most",
        )
    return ReplicaLayout(partitions, copies)


def assigned_layout(topic: CreatableTopic, node_id: int) -> ReplicaLayout:
    """The layout that the request spells out, broker by broker."""
    if topic.num_partitions != -1 or topic.replication_factor != -1:
        raise Refusal(
            ErrorCode.INVALID_REQUEST,
            "A manual assignment was given: partition count and replication factor must both be -1.",
        )
    indexes = sorted(assignment.partition_index for assignment in topic.assignments)
    if indexes != list(range(len(indexes))):
        raise Refusal(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"The assigned partitions {indexes} are not 0 to {len(indexes) - 1}."
        )
    for assignment in topic.assignments:
        if list(assignment.broker_ids) != [node_id]:
            raise Refusal(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"Partition {assignment.partition_index} is assigned to brokers {list(assignment.broker_ids)}; "
                f"the cluster has only broker {node_id}.",
            )
    return ReplicaLayout(len(indexes), 1)


def configs_of(topic: CreatableTopic) -> dict[str, str]:
    """The configs that the request sets, checked."""
    configs: dict[str, str] = {}
    for config in topic.configs:
        fault = topic_configs.fault_of(config.name, config.value)
        if fault is None and config.name in configs:
            fault = f"{config.name} is given twice; give it once"
        if fault or config.value is None:
            raise Refusal(ErrorCode.INVALID_CONFIG, fault or f"{config.name} has no value")
        configs[config.name] = config.value
    fault = topic_configs.conflict_of(configs)
    if fault:
        raise Refusal(ErrorCode.INVALID_CONFIG, fault)
    return configs


def records_of(
    name: str, topic_id: UUID, layout: ReplicaLayout, configs: dict[str, str], node_id: int
) -> list[Message]:
    """What the log says once the topic is there."""
    return [
        TopicRecord(name, topic_id),
        *(ConfigRecord(TOPIC_RESOURCE, name, key, value) for key, value in configs.items()),
        *(partition_record(topic_id, index, node_id) for index in range(layout.partitions)),
    ]


def partition_record(topic_id: UUID, index: int, node_id: int) -> PartitionRecord:
    """A partition with one copy, on its leader."""
    return PartitionRecord(
        index,
        topic_id,
        replicas=[node_id],
        isr=[node_id],
        leader=node_id,
        leader_epoch=0,
        partition_epoch=0,
        directories=[ANY_DIRECTORY],
    )


def accepted(
    topic: CreatableTopic, topic_id: UUID, layout: ReplicaLayout, settings: Iterable[Setting]
) -> CreatableTopicResult:
    """The answer to a wish that is granted."""
    return CreatableTopicResult(
        name=topic.name,
        topic_id=topic_id,
        num_partitions=layout.partitions,
        replication_factor=layout.copies,
        configs=[
            CreatableTopicConfigs(name=name, value=value, config_source=source) for name, value, source in settings
        ],
    )


def refused(topic: CreatableTopic, refusal: Refusal) -> CreatableTopicResult:
    """The answer to a wish that is not."""
    return CreatableTopicResult(name=topic.name, error_code=refusal.code, error_message=str(refusal))
