"""What to answer to a wish for more partitions, and the records that make it true. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from ottla.coordination.cluster.events import PartitionsRequested
from ottla.coordination.cluster.records import PartitionRecord
from ottla.coordination.cluster.topic import Topic
from ottla.coordination.cluster.topic_request import MOST_PARTITIONS, Refusal, partition_record
from ottla.coordination.machine import Decision, Reply
from ottla.errors import ErrorCode
from ottla.protocol.messages.create_partitions import CreatePartitionsTopic, CreatePartitionsTopicResult
from ottla.protocol.schema import Message


def decide(topics: Mapping[str, Topic], event: PartitionsRequested) -> Decision[Message]:
    """The new partitions of each topic that may have them, and a result for each that was asked for."""
    records: list[Message] = []
    results: list[CreatePartitionsTopicResult] = []
    wished = Counter(wanted.name for wanted in event.topics)
    for wanted in event.topics:
        try:
            if wished[wanted.name] > 1:
                raise Refusal(ErrorCode.INVALID_REQUEST, f"Topic '{wanted.name}' is named twice in this request.")
            records += new_partitions(topics.get(wanted.name), wanted, event.node_id)
            results.append(CreatePartitionsTopicResult(wanted.name))
        except Refusal as refusal:
            results.append(CreatePartitionsTopicResult(wanted.name, refusal.code, str(refusal)))
    return Decision(() if event.validate_only else tuple(records), (Reply(event.ticket, results),))


def new_partitions(topic: Topic | None, wanted: CreatePartitionsTopic, node_id: int) -> list[PartitionRecord]:
    """What the log says once they are there."""
    topic = check_growth(topic, wanted)
    check_assignments(wanted, node_id)
    return [partition_record(topic.topic_id, index, node_id) for index in range(len(topic.partitions), wanted.count)]


def check_growth(topic: Topic | None, wanted: CreatePartitionsTopic) -> Topic:
    """The topic, which is there and may have as many partitions and as many assignments."""
    if topic is None:
        raise Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no topic '{wanted.name}'.")
    if topic.internal:
        # Kafka lets it happen, and its groups lose their offsets.
        raise Refusal(
            ErrorCode.INVALID_REQUEST, f"'{topic.name}' cannot grow: the broker finds a key by the count of partitions."
        )
    check_count(topic, wanted.count)
    additional = wanted.count - len(topic.partitions)
    if wanted.assignments is not None and len(wanted.assignments) != additional:
        raise Refusal(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"{additional} more partitions are asked for, with "
            f"{len(wanted.assignments)} lists of their copies; give one for each",
        )
    return topic


def check_count(topic: Topic, count: int) -> None:
    """Refuse what is not more, and what is too much."""
    present = len(topic.partitions)
    if count == present:
        raise Refusal(ErrorCode.INVALID_PARTITIONS, f"Topic already has {present} partition(s).")
    if count < present:
        raise Refusal(
            ErrorCode.INVALID_PARTITIONS,
            f"topic {topic.name} has {present} partitions; a new number is greater, and {count} is not",
        )
    if count - present > MOST_PARTITIONS:
        raise Refusal(
            ErrorCode.INVALID_PARTITIONS, f"{count - present} partitions: at most {MOST_PARTITIONS} are made at once"
        )


def check_assignments(wanted: CreatePartitionsTopic, node_id: int) -> None:
    """Refuse to lay partitions out as it cannot be on the one broker that there is."""
    for assignment in wanted.assignments or ():
        if list(assignment.broker_ids) != [node_id]:
            raise Refusal(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"A partition is assigned to brokers {list(assignment.broker_ids)}; "
                f"the cluster has only broker {node_id}.",
            )
