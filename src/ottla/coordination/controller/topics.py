"""CreateTopics and CreatePartitions: validation of the request, placement, and the records (KIP-4, KIP-195).

Each topic of a request has its own result: a topic that is rejected does not prevent the others. Only a request with
too many partitions in total fails as a whole. The records of a topic are in Kafka's order: topic, configs, partitions.
Names and configs are validated in `cluster/`.
"""

from __future__ import annotations

from collections import Counter
from uuid import UUID

from ottla.coordination.cluster.partition_request import check_growth
from ottla.coordination.cluster.records import TOPIC_RESOURCE, ConfigRecord, TopicRecord
from ottla.coordination.cluster.topic_configs import list_settings
from ottla.coordination.cluster.topic_names import fold_name
from ottla.coordination.cluster.topic_request import (
    MOST_PARTITIONS,
    Refusal,
    ReplicaLayout,
    build_error,
    build_result,
    check_name,
    read_configs,
)
from ottla.coordination.controller.draft import ClusterDraft
from ottla.coordination.controller.layouts import (
    build_partition_record,
    check_active,
    check_assignment,
    place_partitions,
)
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

TOO_MANY = f"at most {MOST_PARTITIONS} partitions are created by one request; divide it into several"


def create_topics(draft: ClusterDraft, request: CreateTopicsRequest) -> CreateTopicsResponse:
    """Create the topics and return one result per topic, in order."""
    names = {fold_name(name): name for name in draft.metadata.topics}
    counts = Counter(topic.name for topic in request.topics)
    too_many = sum(count_requested_partitions(draft, topic) for topic in request.topics) > MOST_PARTITIONS
    results = []
    for topic, topic_id in zip(request.topics, draft.random_values.topic_ids, strict=True):
        try:
            if too_many:
                raise Refusal(ErrorCode.POLICY_VIOLATION, TOO_MANY)
            if counts[topic.name] > 1:
                raise Refusal(ErrorCode.INVALID_REQUEST, f"topic {topic.name!r} is named twice in one request")
            check_name(topic, names)
            result, records = build_topic(draft, topic, ZERO_UUID if request.validate_only else topic_id)
        except Refusal as refusal:
            results.append(build_error(topic, refusal))
            continue
        names[fold_name(topic.name)] = topic.name
        results.append(result)
        for record in () if request.validate_only else records:
            draft.write(record)
    return CreateTopicsResponse(topics=results)


def count_requested_partitions(draft: ClusterDraft, topic: CreatableTopic) -> int:
    """Return the number of partitions in the request, valid or not."""
    if topic.assignments:
        return len(topic.assignments)
    return draft.config.default_partitions if topic.num_partitions == -1 else max(0, topic.num_partitions)


def build_topic(
    draft: ClusterDraft, topic: CreatableTopic, topic_id: UUID
) -> tuple[CreatableTopicResult, list[Message]]:
    """Return the result and the records of a valid topic. The configs are before the partitions."""
    configs = read_configs(topic)
    layout = read_assignments(draft, topic) if topic.assignments else place_replicas(draft, topic)
    records: list[Message] = [TopicRecord(topic.name, topic_id)]
    records += [ConfigRecord(TOPIC_RESOURCE, topic.name, name, value) for name, value in configs.items()]
    records += [build_partition_record(draft, topic_id, index, replicas) for index, replicas in enumerate(layout)]
    settings = list_settings(configs, draft.config.topic_defaults)
    return build_result(topic, topic_id, ReplicaLayout(len(layout), len(layout[0])), settings), records


def place_replicas(draft: ClusterDraft, topic: CreatableTopic) -> list[tuple[int, ...]]:
    """Return the replicas of each partition by automatic placement."""
    replication_factor = (
        draft.config.default_replication if topic.replication_factor == -1 else topic.replication_factor
    )
    if replication_factor <= 0:
        raise Refusal(
            ErrorCode.INVALID_REPLICATION_FACTOR, f"{replication_factor} replicas: at least one, or -1 for the default"
        )
    partitions = count_requested_partitions(draft, topic)
    if partitions <= 0:
        raise Refusal(
            ErrorCode.INVALID_PARTITIONS, f"{topic.num_partitions} partitions: at least one, or -1 for the default"
        )
    return place_partitions(draft, partitions, replication_factor)


def read_assignments(draft: ClusterDraft, topic: CreatableTopic) -> list[tuple[int, ...]]:
    """Return the replicas of each partition from the assignments in the request."""
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
        check_active(draft, each.partition_index, each.broker_ids)
        layout[each.partition_index] = tuple(each.broker_ids)
    if sorted(layout) != list(range(len(layout))):
        raise Refusal(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"partitions {sorted(layout)} are assigned: they must be 0 to {len(layout) - 1}",
        )
    return [layout[index] for index in range(len(layout))]


def create_partitions(draft: ClusterDraft, request: CreatePartitionsRequest) -> CreatePartitionsResponse:
    """Add partitions to the topics and return one result per topic, in order."""
    counts = Counter(wanted.name for wanted in request.topics)
    results = []
    too_many = sum(count_new_partitions(draft, wanted) for wanted in request.topics) > MOST_PARTITIONS
    for wanted in request.topics:
        try:
            if too_many:
                raise Refusal(ErrorCode.POLICY_VIOLATION, TOO_MANY)
            if counts[wanted.name] > 1:
                raise Refusal(ErrorCode.INVALID_REQUEST, f"topic {wanted.name!r} is named twice in one request")
            records = build_partitions(draft, wanted)
        except Refusal as refusal:
            results.append(CreatePartitionsTopicResult(wanted.name, refusal.code, str(refusal)))
            continue
        results.append(CreatePartitionsTopicResult(wanted.name))
        for record in () if request.validate_only else records:
            draft.write(record)
    return CreatePartitionsResponse(results=results)


def count_new_partitions(draft: ClusterDraft, wanted: CreatePartitionsTopic) -> int:
    """Return the number of partitions to add; 0 if that alone exceeds the limit of one request."""
    topic = draft.metadata.topics.get(wanted.name)
    more = 0 if topic is None else wanted.count - len(topic.partitions)
    return more if 0 < more <= MOST_PARTITIONS else 0


def build_partitions(draft: ClusterDraft, wanted: CreatePartitionsTopic) -> list[Message]:
    """Return the records of the added partitions, with the replication factor of the topic."""
    topic = check_growth(draft.metadata.topics.get(wanted.name), wanted)
    first, replication_factor = len(topic.partitions), len(topic.partitions[0].replicas)
    layout = [] if wanted.assignments is None else [tuple(each.broker_ids) for each in wanted.assignments]
    for index, replicas in enumerate(layout, first):
        check_assignment(draft, replicas, replication_factor)
        check_active(draft, index, replicas)
    if wanted.assignments is None:
        layout = place_partitions(draft, wanted.count - first, replication_factor)
    return [
        build_partition_record(draft, topic.topic_id, index, replicas) for index, replicas in enumerate(layout, first)
    ]
