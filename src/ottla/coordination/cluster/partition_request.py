"""CreatePartitions: the validation of a request (KIP-195). Pure."""

from __future__ import annotations

from ottla.coordination.cluster.topic import ClusterTopic
from ottla.coordination.cluster.topic_request import MOST_PARTITIONS, Refusal
from ottla.errors import ErrorCode
from ottla.protocol.messages.create_partitions import CreatePartitionsTopic


def check_growth(topic: ClusterTopic | None, wanted: CreatePartitionsTopic) -> ClusterTopic:
    """Return the topic. Raise Refusal if it cannot get the requested partitions."""
    if topic is None:
        raise Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no topic '{wanted.name}'.")
    if topic.is_internal:
        # Kafka allows this, and the groups lose their committed offsets.
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


def check_count(topic: ClusterTopic, count: int) -> None:
    """Raise Refusal unless the new number of partitions is greater, within the limit of one request."""
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
