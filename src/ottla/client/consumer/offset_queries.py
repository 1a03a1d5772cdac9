"""What a consumer can be asked about topics and offsets, outside its assignment too.

What waits is steps, for callers that block and for callers that await.
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
"""How to ask for them."""


class OffsetQueries:
    """Questions to brokers and to the group's coordinator."""

    def __init__(self, core: ConsumerCore) -> None:
        self._core = core

    def at(
        self, timestamp: int, partitions: Iterable[TopicPartition], timeout: float | None
    ) -> Steps[dict[TopicPartition, int]]:
        """The offset of each partition at EARLIEST or LATEST."""
        asked = dict.fromkeys(checked_partitions(partitions), timestamp)
        found = yield from self._core.offset_fetcher.fetch_offsets(asked, self._core.patience(timeout))
        return {tp: found[tp].offset for tp in asked}

    def for_times(
        self, timestamps: Mapping[TopicPartition, int], timeout: float | None
    ) -> Steps[dict[TopicPartition, OffsetAndTimestamp | None]]:
        """The first record at or after each time in milliseconds; None where there is none."""
        asked = {
            checked_partition(tp): checked_whole(f"the time for {tp}", timestamp, "milliseconds since the epoch")
            for tp, timestamp in checked_dict("timestamps", timestamps, TIMES).items()
        }
        found = yield from self._core.offset_fetcher.fetch_offsets(asked, self._core.patience(timeout))
        return {tp: found[tp] if found[tp].offset >= 0 else None for tp in asked}

    def committed(
        self, partitions: Iterable[TopicPartition], timeout: float | None
    ) -> Steps[dict[TopicPartition, OffsetAndMetadata | None]]:
        """What the group has committed for each partition; None where it has nothing."""
        coordinator = self._core.group("committed()")
        asked = checked_partitions(partitions)
        fetched = coordinator.committed.fetch(asked, self._core.patience(timeout))
        found = yield from self._core.calls.timed("committed", fetched)
        return {tp: found.get(tp) for tp in asked}

    def partitions_for(self, topic: str, timeout: float | None) -> Steps[list[PartitionInfo]]:
        """The topic's partitions with their leaders and replicas; empty when there is no such topic."""
        topics = yield from self._core.topics.topics([checked_topic(topic)], self._core.patience(timeout))
        info = topics.get(topic)
        return [] if info is None else list(info.partitions)

    def topics(self, timeout: float | None) -> Steps[set[str]]:
        """The names of all topics this client may see."""
        topics = yield from self._core.topics.topics(None, self._core.patience(timeout))
        return set(topics)
