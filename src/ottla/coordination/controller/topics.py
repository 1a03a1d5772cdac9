"""CreateTopics and CreatePartitions in a cluster of several brokers; what topics may be called and set is `cluster/`'s."""

from __future__ import annotations

from collections import Counter
from uuid import UUID

from ottla.coordination.cluster.partition_request import check_growth
from ottla.coordination.cluster.records import TOPIC_RESOURCE, ConfigRecord, TopicRecord
from ottla.coordination.cluster.topic_configs import settings_of
from ottla.coordination.cluster.topic_names import folded
from ottla.coordination.cluster.topic_request import (
    MOST_PARTITIONS,
    Refusal,
    ReplicaLayout,
    accepted,
    check_name,
    configs_of,
    refused,
)
from ottla.coordination.controller.draft import ClusterDraft
from ottla.coordination.controller.layouts import check_assignment, check_present, laid_out, partition_record
from ottla.errors import ErrorCode
from ottla.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)
from ottla.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from ottla.protocol.schema import ZERO_UUID, Message


def create(draft: ClusterDraft, request: CreateTopicsRequest) -> CreateTopicsResponse:
    """A result for each topic, in order; those that may be are, whatever becomes of the others."""
    names = {folded(name): name for name in draft.metadata.topics}
    wished = Counter(topic.name for topic in request.topics)
    too_many = sum(partitions_of(draft, topic) for topic in request.topics) > MOST_PARTITIONS
    results = []
    for topic, topic_id in zip(request.topics, draft.chance.topic_ids, strict=True):
        try:
            if too_many:
                raise Refusal(ErrorCode.POLICY_VIOLATION, f"more than {MOST_PARTITIONS} partitions are wanted at once")
            if wished[topic.name] > 1:
                raise Refusal(ErrorCode.INVALID_REQUEST, f"topic {topic.name!r} is named twice in one request")
            check_name(topic, names)
            result, records = created(draft, topic, ZERO_UUID if request.validate_only else topic_id)
        except Refusal as refusal:
            results.append(refused(topic, refusal))
            continue
        names[folded(topic.name)] = topic.name
        results.append(result)
        for record in () if request.validate_only else records:
            draft.write(record)
    return CreateTopicsResponse(topics=results)


def partitions_of(draft: ClusterDraft, topic: CreatableTopic) -> int:
    """How many a topic asks for, whether it can have them or not."""
    if topic.assignments:
        return len(topic.assignments)
    return draft.config.default_partitions if topic.num_partitions == -1 else max(0, topic.num_partitions)


def created(draft: ClusterDraft, topic: CreatableTopic, topic_id: UUID) -> tuple[CreatableTopicResult, list[Message]]:
    """The answer to a wish that is granted, and the records of it; its configs stand before its partitions."""
    configs = configs_of(topic)
    layout = assigned(draft, topic) if topic.assignments else chosen(draft, topic)
    records: list[Message] = [TopicRecord(topic.name, topic_id)]
    records += [ConfigRecord(TOPIC_RESOURCE, topic.name, name, value) for name, value in configs.items()]
    records += [partition_record(draft, topic_id, index, replicas) for index, replicas in enumerate(layout)]
    settings = settings_of(configs, draft.config.topic_defaults)
    return accepted(topic, topic_id, ReplicaLayout(len(layout), len(layout[0])), settings), records


def chosen(draft: ClusterDraft, topic: CreatableTopic) -> list[tuple[int, ...]]:
    """Where its partitions lie, if nobody says so."""
    copies = draft.config.default_replication if topic.replication_factor == -1 else topic.replication_factor
    if copies <= 0:
        raise Refusal(ErrorCode.INVALID_REPLICATION_FACTOR, f"{copies} replicas: at least one, or -1 for the default")
    partitions = partitions_of(draft, topic)
    if partitions <= 0:
        raise Refusal(
            ErrorCode.INVALID_PARTITIONS, f"{topic.num_partitions} partitions: at least one, or -1 for the default"
        )
    return laid_out(draft, partitions, copies)


def assigned(draft: ClusterDraft, topic: CreatableTopic) -> list[tuple[int, ...]]:
    """Where its partitions lie, as the request says."""
    if topic.num_partitions != -1 or topic.replication_factor != -1:
        raise Refusal(
            ErrorCode.INVALID_REQUEST,
            "brokers are assigned to each partition: leave the numbers of partitions and of replicas at -1",
        )
    layout: dict[int, tuple[int, ...]] = {}
    for each in topic.assignments:
        if each.partition_index in layout:
            raise Refusal(ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"partition {each.partition_index} is assigned twice")
        check_assignment(draft, each.broker_ids, len(next(iter(layout.values()))) if layout else None)
        check_present(draft, each.partition_index, each.broker_ids)
        layout[each.partition_index] = tuple(each.broker_ids)
    if sorted(layout) != list(range(len(layout))):
        raise Refusal(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"partitions {sorted(layout)} are assigned: they must be 0 to {len(layout) - 1}",
        )
    return [layout[index] for index in range(len(layout))]


def grow(draft: ClusterDraft, request: CreatePartitionsRequest) -> CreatePartitionsResponse:
    """A result for each topic, in order."""
    wished = Counter(wanted.name for wanted in request.topics)
    results = []
    for wanted in request.topics:
        try:
            if wished[wanted.name] > 1:
                raise Refusal(ErrorCode.INVALID_REQUEST, f"topic {wanted.name!r} is named twice in one request")
            records = grown(draft, wanted)
        except Refusal as refusal:
            results.append(CreatePartitionsTopicResult(wanted.name, refusal.code, str(refusal)))
            continue
        results.append(CreatePartitionsTopicResult(wanted.name))
        for record in () if request.validate_only else records:
            draft.write(record)
    return CreatePartitionsResponse(results=results)


def grown(draft: ClusterDraft, wanted: CreatePartitionsTopic) -> list[Message]:
    """The records of partitions that a topic gets, in as many copies as it has."""
    topic = check_growth(draft.metadata.topics.get(wanted.name), wanted)
    first, copies = len(topic.partitions), len(topic.partitions[0].replicas)
    layout = [] if wanted.assignments is None else [tuple(each.broker_ids) for each in wanted.assignments]
    for index, replicas in enumerate(layout, first):
        check_assignment(draft, replicas, copies)
        check_present(draft, index, replicas)
    if wanted.assignments is None:
        layout = laid_out(draft, wanted.count - first, copies)
    return [partition_record(draft, topic.topic_id, index, replicas) for index, replicas in enumerate(layout, first)]
