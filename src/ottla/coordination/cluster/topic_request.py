"""CreateTopics: the validation of one topic, and its result (KIP-4, KIP-525). Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple
from uuid import UUID

from ottla.coordination.cluster import topic_configs, topic_names
from ottla.coordination.cluster.topic_configs import TopicSetting
from ottla.errors import ErrorCode
from ottla.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfigs, CreatableTopicResult

MOST_PARTITIONS = 10_000
"""The maximum number of partitions of one request, as in Kafka."""


class Refusal(Exception):
    """The error for one resource of a request: the error code and the message."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class ReplicaLayout(NamedTuple):
    """The number of partitions and the replication factor."""

    partitions: int
    replication_factor: int


def check_name(topic: CreatableTopic, existing: Mapping[str, str]) -> None:
    """Raise Refusal if the name is invalid, exists, or collides in metrics. `existing` maps folded names to names."""
    fault = topic_names.find_fault(topic.name)
    if fault:
        raise Refusal(ErrorCode.INVALID_TOPIC_EXCEPTION, fault)
    other = existing.get(topic_names.fold_name(topic.name))
    if other == topic.name:
        raise Refusal(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{topic.name}' already exists.")
    if other is not None:
        raise Refusal(
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            f"'{topic.name}' and the topic '{other}' differ only in '.' and '_', which metrics write alike",
        )


def read_configs(topic: CreatableTopic) -> dict[str, str]:
    """Return the configs in the request. Raise Refusal if they are invalid."""
    configs: dict[str, str] = {}
    for config in topic.configs:
        fault = topic_configs.find_fault(config.name, config.value)
        if fault is None and config.name in configs:
            fault = f"{config.name} is given twice; give it once"
        if fault or config.value is None:
            raise Refusal(ErrorCode.INVALID_CONFIG, fault or f"{config.name} has no value")
        configs[config.name] = config.value
    fault = topic_configs.find_conflict(configs)
    if fault:
        raise Refusal(ErrorCode.INVALID_CONFIG, fault)
    return configs


def build_result(
    topic: CreatableTopic, topic_id: UUID, layout: ReplicaLayout, settings: Iterable[TopicSetting]
) -> CreatableTopicResult:
    """Return the result for a created topic, with all its configs (KIP-525)."""
    return CreatableTopicResult(
        name=topic.name,
        topic_id=topic_id,
        num_partitions=layout.partitions,
        replication_factor=layout.replication_factor,
        configs=[
            CreatableTopicConfigs(name=name, value=value, config_source=source) for name, value, source in settings
        ],
    )


def build_error(topic: CreatableTopic, refusal: Refusal) -> CreatableTopicResult:
    """Return the result for a rejected topic."""
    return CreatableTopicResult(name=topic.name, error_code=refusal.code, error_message=str(refusal))
