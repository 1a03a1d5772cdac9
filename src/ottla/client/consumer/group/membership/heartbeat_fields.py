"""What a ConsumerGroupHeartbeat says: everything to join and where an answer was lost, else only what has changed.

Pure: builds messages, and remembers what the last one said.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple
from uuid import UUID

from ottla.client.consumer.config import ConsumerConfig
from ottla.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, TopicPartitions

TopicIdPartition = tuple[UUID, int]
"""A partition: its topic's id and its number."""
JOINING, LEAVING, LEAVING_FOR_A_WHILE = 0, -1, -2
"""Epochs with which members come and go; a static member may come back."""


class SubscribedTopics(NamedTuple):
    """What a member reads: topics by name, or what a pattern matches that the broker looks at."""

    names: frozenset[str] = frozenset()
    pattern: str | None = None


class Said(NamedTuple):
    """What the coordinator has been told."""

    wanted: SubscribedTopics
    owned: frozenset[TopicIdPartition]


class HeartbeatFields:
    """The heartbeats of one member."""

    def __init__(self, config: ConsumerConfig) -> None:
        self._config = config
        self._said: Said | None = None

    def reset(self) -> None:
        """What was said may not have been heard: the next one says everything."""
        self._said = None

    def is_news(self, wanted: SubscribedTopics) -> bool:
        """Whether the coordinator knows of another subscription."""
        return self._said is not None and self._said.wanted != wanted

    def beat(
        self, member_id: str, epoch: int, wanted: SubscribedTopics, owned: frozenset[TopicIdPartition]
    ) -> ConsumerGroupHeartbeatRequest:
        said = None if epoch == JOINING else self._said
        self._said = Said(wanted, owned)
        return ConsumerGroupHeartbeatRequest(
            group_id=self._config.group_id or "",
            member_id=member_id,
            member_epoch=epoch,
            instance_id=self._config.group_instance_id,
            rack_id=(self._config.client_rack or None) if said is None else None,
            rebalance_timeout_ms=self._config.max_poll_interval_ms if said is None else -1,
            subscribed_topic_names=sorted(wanted.names) if said is None or said.wanted.names != wanted.names else None,
            subscribed_topic_regex=self._pattern(said, wanted),
            server_assignor=self._config.group_remote_assignor if said is None else None,
            topic_partitions=by_topic(owned) if said is None or said.owned != owned else None,
        )

    def _pattern(self, said: Said | None, wanted: SubscribedTopics) -> str | None:
        """The pattern where it is news; an empty one for none.

        A static member says so also when it comes: it has the place of who had its name before, and that one's pattern.
        """
        if said is not None and said.wanted.pattern == wanted.pattern:
            return None
        had_one = said is not None or self._config.group_instance_id is not None
        return wanted.pattern or ("" if had_one else None)

    def farewell(self, member_id: str) -> ConsumerGroupHeartbeatRequest:
        """The last one; a static member keeps its place for its session."""
        instance = self._config.group_instance_id
        return ConsumerGroupHeartbeatRequest(
            group_id=self._config.group_id or "",
            member_id=member_id,
            member_epoch=LEAVING if instance is None else LEAVING_FOR_A_WHILE,
            instance_id=instance,
        )


def by_topic(partitions: Iterable[TopicIdPartition]) -> list[TopicPartitions]:
    """Partitions as they travel."""
    topics: dict[UUID, list[int]] = {}
    for topic_id, partition in sorted(partitions):
        topics.setdefault(topic_id, []).append(partition)
    return [TopicPartitions(topic_id, partitions) for topic_id, partitions in topics.items()]
