"""An immutable view of the cluster, replaced as a whole by `Metadata`, after Kafka's `MetadataSnapshot`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple
from uuid import UUID

from msgspec import Struct, field
from msgspec.structs import replace

from ottla.errors import ErrorCode
from ottla.model import Node, PartitionInfo, TopicPartition

NO_ID = UUID(int=0)
"""The id of a topic of a broker without topic ids."""
REFUSED_TOPIC = frozenset({ErrorCode.INVALID_TOPIC_EXCEPTION, ErrorCode.TOPIC_AUTHORIZATION_FAILED})
"""Errors of a topic that a wait does not change."""


class KnownTopic(NamedTuple):
    """A topic with its partitions, in order."""

    name: str
    topic_id: UUID
    internal: bool
    partitions: tuple[PartitionInfo, ...]

    @property
    def partition_range(self) -> str:
        """The partition numbers as text: `0` or `0 to 2`."""
        last = len(self.partitions) - 1
        return f"0 to {last}" if last > 0 else "0" if last == 0 else "none"


class MetadataSnapshot(Struct, frozen=True):
    """Brokers, topics, leaders."""

    nodes: Mapping[int, Node] = field(default_factory=dict)
    topics: Mapping[str, KnownTopic] = field(default_factory=dict)
    errors: Mapping[str, int] = field(default_factory=dict)
    """Error codes of requested topics that could not be described."""
    cluster_id: str | None = None
    controller_id: int = -1
    names: Mapping[UUID, str] = field(default_factory=dict)
    """Topic names by id."""

    def partition(self, tp: TopicPartition) -> PartitionInfo | None:
        """Return the known state of one partition."""
        topic = self.topics.get(tp.topic)
        if topic is None or not 0 <= tp.partition < len(topic.partitions):
            return None
        return topic.partitions[tp.partition]

    def leader(self, tp: TopicPartition) -> Node | None:
        """Return the leader of `tp`; None if there is none or it is unknown."""
        info = self.partition(tp)
        return None if info is None else self.nodes.get(info.leader)

    def has_leaders(self, name: str) -> bool:
        """Return True if the topic is known, with a leader for each partition."""
        topic = self.topics.get(name)
        return topic is not None and all(partition.leader in self.nodes for partition in topic.partitions)

    def describes(self, names: Iterable[str]) -> bool:
        """Return True if each topic is known, or the reason why it could not be described."""
        return all(name in self.topics or name in self.errors for name in names)

    def leader_epoch(self, tp: TopicPartition) -> int:
        """Return the epoch of the known leader, or -1."""
        info = self.partition(tp)
        return -1 if info is None else info.leader_epoch

    def with_leaders(
        self, leaders: Mapping[TopicPartition, tuple[int, int]], nodes: Mapping[int, Node]
    ) -> MetadataSnapshot:
        """Return a copy with other leaders (node, epoch) of known partitions."""
        topics = dict(self.topics)
        for tp, (node, epoch) in leaders.items():
            partitions = list(topics[tp.topic].partitions)
            partitions[tp.partition] = partitions[tp.partition]._replace(leader=node, leader_epoch=epoch)
            topics[tp.topic] = topics[tp.topic]._replace(partitions=tuple(partitions))
        return replace(self, topics=topics, nodes=nodes)

    def updated_by(self, received: MetadataSnapshot) -> MetadataSnapshot:
        """Return the snapshot `received`, with the topics and errors of this one that it does not mention."""
        mentioned = received.topics.keys() | received.errors.keys()
        topics = {name: topic for name, topic in self.topics.items() if name not in mentioned}
        topics.update(received.topics)
        errors = {name: code for name, code in self.errors.items() if name not in mentioned}
        errors.update(received.errors)
        names = {topic.topic_id: topic.name for topic in topics.values() if topic.topic_id != NO_ID}
        return replace(received, topics=topics, errors=errors, names=names)

    def topic_id(self, topic: str) -> UUID:
        """Return the topic's id; zero if the broker has no topic ids."""
        info = self.topics.get(topic)
        return NO_ID if info is None else info.topic_id

    def topic_ids(self, topics: Iterable[str]) -> dict[str, UUID]:
        """Return the known ids of these topics."""
        return {topic: topic_id for topic in topics if (topic_id := self.topic_id(topic)) != NO_ID}
