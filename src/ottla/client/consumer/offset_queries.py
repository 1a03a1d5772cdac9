"""Queries of topics and offsets, also outside the assignment.

Written as steps, for blocking and asyncio callers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ottla.client.consumer.consumer_core import ConsumerCore
from ottla.client.interface.arguments import (
    checked_dict,
    checked_partition,
    checked_partitions,
    checked_topic,
    checked_whole,
)
from ottla.client.runtime.steps import Steps
from ottla.model import OffsetAndMetadata, OffsetAndTimestamp, PartitionInfo, TopicPartition

TIMES = "{TopicPartition('flights', 0): 1767225600000}"
"""An example of the argument, for error messages."""


class OffsetQueries:
    """Queries to brokers and to the group coordinator."""

    def __init__(self, core: ConsumerCore) -> None:
        self._core = core

    def list_offsets(
        self, timestamp: int, partitions: Iterable[TopicPartition], timeout: float | None
    ) -> Steps[dict[TopicPartition, int]]:
        """Return the offset of each partition at EARLIEST or LATEST."""
        asked = dict.fromkeys(checked_partitions(partitions), timestamp)
        found = yield from self._core.offset_fetcher.fetch_offsets(asked, self._core.timeout_seconds(timeout))
        return {tp: found[tp].offset for tp in asked}

    def offsets_for_times(
        self, timestamps: Mapping[TopicPartition, int], timeout: float | None
    ) -> Steps[dict[TopicPartition, OffsetAndTimestamp | None]]:
        """Return the first offset at or after each timestamp in milliseconds; None if there is none."""
        asked = {
            checked_partition(tp): checked_whole(f"the time for {tp}", timestamp, "milliseconds since 1970")
            for tp, timestamp in checked_dict("timestamps", timestamps, TIMES).items()
        }
        found = yield from self._core.offset_fetcher.fetch_offsets(asked, self._core.timeout_seconds(timeout))
        return {tp: found[tp] if found[tp].offset >= 0 else None for tp in asked}

    def committed(
        self, partitions: Iterable[TopicPartition], timeout: float | None
    ) -> Steps[dict[TopicPartition, OffsetAndMetadata | None]]:
        """Return the committed offset of each partition; None if there is none."""
        coordinator = self._core.require_group("committed()")
        asked = checked_partitions(partitions)
        fetched = coordinator.committed.fetch(asked, self._core.timeout_seconds(timeout))
        found = yield from self._core.calls.time_steps("committed", fetched)
        return {tp: found.get(tp) for tp in asked}

    def partitions_for(self, topic: str, timeout: float | None) -> Steps[list[PartitionInfo]]:
        """Return the partitions of a topic with their leaders and replicas; an empty list if the topic does not exist."""
        topics = yield from self._core.topics.fetch_topics([checked_topic(topic)], self._core.timeout_seconds(timeout))
        info = topics.get(topic)
        return [] if info is None else list(info.partitions)

    def topics(self, timeout: float | None) -> Steps[set[str]]:
        """Return the names of all topics that this client may see."""
        topics = yield from self._core.topics.fetch_topics(None, self._core.timeout_seconds(timeout))
        return set(topics)
