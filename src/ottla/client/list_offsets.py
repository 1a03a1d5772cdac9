"""Asking for offsets by time, of many partitions at once.

Pure: questions out of what is known of the cluster, findings out of answers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct, field

from ottla.client.metadata.cluster import Cluster
from ottla.errors import ErrorCode
from ottla.model import Node, OffsetAndTimestamp, TopicPartition
from ottla.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic

CONSUMER = -1
"""The replica id of those who are not replicas."""
LEADER_MOVED = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NETWORK_EXCEPTION,
    }
)
"""Errors after which to look who leads now and ask again."""


class Findings(Struct):
    offsets: dict[TopicPartition, OffsetAndTimestamp] = field(default_factory=dict)
    """Offset -1 where no record is that young."""
    retriable: dict[TopicPartition, int] = field(default_factory=dict)
    fatal: dict[TopicPartition, int] = field(default_factory=dict)


def questions(
    cluster: Cluster, timestamps: Mapping[TopicPartition, int], isolation_level: int, timeout_ms: int
) -> tuple[list[tuple[Node, ListOffsetsRequest, list[TopicPartition]]], list[TopicPartition]]:
    """A request per leader with the partitions it asks for, and the partitions nobody is known to lead."""
    by_leader: dict[Node, list[TopicPartition]] = {}
    leaderless: list[TopicPartition] = []
    for tp in timestamps:
        leader = cluster.leader(tp)
        if leader is None:
            leaderless.append(tp)
        else:
            by_leader.setdefault(leader, []).append(tp)
    asked = []
    for leader, tps in by_leader.items():
        topics = topics_of(cluster, tps, timestamps)
        request = ListOffsetsRequest(
            replica_id=CONSUMER, isolation_level=isolation_level, topics=topics, timeout_ms=timeout_ms
        )
        asked.append((leader, request, tps))
    return asked, leaderless


def topics_of(
    cluster: Cluster, tps: Iterable[TopicPartition], timestamps: Mapping[TopicPartition, int]
) -> list[ListOffsetsTopic]:
    """The partitions grouped by topic, as the request has them."""
    by_topic: dict[str, list[ListOffsetsPartition]] = {}
    for tp in tps:
        part = ListOffsetsPartition(
            partition_index=tp.partition, current_leader_epoch=cluster.leader_epoch(tp), timestamp=timestamps[tp]
        )
        by_topic.setdefault(tp.topic, []).append(part)
    return [ListOffsetsTopic(name=name, partitions=parts) for name, parts in by_topic.items()]


def read_answer(message: Any) -> Findings:
    """Sort a ListOffsetsResponse into offsets and errors."""
    found = Findings()
    for topic in message.topics:
        for part in topic.partitions:
            tp = TopicPartition(topic.name, part.partition_index)
            if part.error_code == ErrorCode.NONE:
                found.offsets[tp] = OffsetAndTimestamp(part.offset, part.timestamp, part.leader_epoch)
            elif part.error_code in LEADER_MOVED:
                found.retriable[tp] = part.error_code
            else:
                found.fatal[tp] = part.error_code
    return found
