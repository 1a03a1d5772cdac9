"""The fields of ConsumerGroupHeartbeat: all when joining or after a lost response, otherwise only changes. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple
from uuid import UUID

from ottla.client.consumer.config import ConsumerConfig
from ottla.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, TopicPartitions

TopicIdPartition = tuple[UUID, int]
"""A partition: topic id and partition number."""
JOINING, LEAVING, LEAVING_FOR_A_WHILE = 0, -1, -2
"""Special member epochs for joining, leaving, and temporary leaving of a static member."""


class SubscribedTopics(NamedTuple):
    """The subscription of a member: topic names, or a pattern that the broker matches."""

    names: frozenset[str] = frozenset()
    pattern: str | None = None


class ReportedFields(NamedTuple):
    """The fields that the coordinator has received."""

    subscription: SubscribedTopics
    owned: frozenset[TopicIdPartition]


class HeartbeatFields:
    """Builds the heartbeats of one member."""

    def __init__(self, config: ConsumerConfig) -> None:
        self._config = config
        self._reported: ReportedFields | None = None

    def reset(self) -> None:
        """Send all fields in the next heartbeat, because the last one may not have arrived."""
        self._reported = None

    def has_changed(self, subscription: SubscribedTopics) -> bool:
        """Return True if the subscription has changed since the last heartbeat."""
        return self._reported is not None and self._reported.subscription != subscription

    def build(
        self, member_id: str, epoch: int, subscription: SubscribedTopics, owned: frozenset[TopicIdPartition]
    ) -> ConsumerGroupHeartbeatRequest:
        said = None if epoch == JOINING else self._reported
        self._reported = ReportedFields(subscription, owned)
        return ConsumerGroupHeartbeatRequest(
            group_id=self._config.group_id or "",
            member_id=member_id,
            member_epoch=epoch,
            instance_id=self._config.group_instance_id,
            rack_id=(self._config.client_rack or None) if said is None else None,
            rebalance_timeout_ms=self._config.max_poll_interval_ms if said is None else -1,
            subscribed_topic_names=sorted(subscription.names)
            if said is None or said.subscription.names != subscription.names
            else None,
            subscribed_topic_regex=self._pattern(said, subscription),
            server_assignor=self._config.group_remote_assignor if said is None else None,
            topic_partitions=group_by_topic(owned) if said is None or said.owned != owned else None,
        )

    def _pattern(self, reported: ReportedFields | None, subscription: SubscribedTopics) -> str | None:
        """Return the pattern if it has changed; "" for none.

        A joining static member always sends it, because it replaces a member that may have had a pattern.
        """
        if reported is not None and reported.subscription.pattern == subscription.pattern:
            return None
        had_pattern = reported is not None or self._config.group_instance_id is not None
        return subscription.pattern or ("" if had_pattern else None)

    def build_leave(self, member_id: str) -> ConsumerGroupHeartbeatRequest:
        """Return the last heartbeat. A static member keeps its place until its session expires."""
        instance = self._config.group_instance_id
        return ConsumerGroupHeartbeatRequest(
            group_id=self._config.group_id or "",
            member_id=member_id,
            member_epoch=LEAVING if instance is None else LEAVING_FOR_A_WHILE,
            instance_id=instance,
        )


def group_by_topic(partitions: Iterable[TopicIdPartition]) -> list[TopicPartitions]:
    """Group partitions by topic id."""
    topics: dict[UUID, list[int]] = {}
    for topic_id, partition in sorted(partitions):
        topics.setdefault(topic_id, []).append(partition)
    return [TopicPartitions(topic_id, partitions) for topic_id, partitions in topics.items()]
