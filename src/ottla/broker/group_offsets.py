"""Committed offsets of groups, kept in `__consumer_offsets`: a machine for each of its partitions.

A group belongs to the partition that its name's hash, Java's, says.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from ottla.broker.config import BrokerConfig
from ottla.broker.partition import Partition
from ottla.broker.partitions import Partitions
from ottla.broker.runtime import Runtime
from ottla.broker.topics import CONSUMER_OFFSETS, Topics
from ottla.clock import Clock
from ottla.coordination.offsets.events import OffsetsCommitted, TopicsDeleted
from ottla.coordination.offsets.offsets import Offsets
from ottla.coordination.offsets.records import decode_record, encode_record
from ottla.errors import ErrorCode, KafkaError
from ottla.model import OffsetAndMetadata, TopicPartition


class GroupOffsets:
    """Commits and fetches of offsets; a machine is built from its log when a group of its partition first asks."""

    def __init__(
        self,
        config: BrokerConfig,
        topics: Topics,
        partitions: Partitions,
        clock: Clock,
        appended: Callable[[Partition, int], None],
    ) -> None:
        self._config = config
        self._topics = topics
        self._partitions = partitions
        self._clock = clock
        self._appended = appended
        self._runtimes: dict[Partition, Runtime[Offsets]] = {}

    def commit(self, group: str, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """Keep offsets of a group; KafkaError where that cannot be done."""
        made = self._topics.ensure(CONSUMER_OFFSETS)
        runtime = self._runtime(group)
        if runtime is None:
            reason = getattr(made, "error_message", None)
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"{CONSUMER_OFFSETS} cannot be made: {reason}")
        runtime.ask(lambda ticket: OffsetsCommitted(ticket, group, dict(offsets), self._clock.wall_ms()))

    def fetch(
        self, group: str, partitions: Sequence[TopicPartition] | None
    ) -> Mapping[TopicPartition, OffsetAndMetadata]:
        """What a group committed for these partitions, or for all; what it did not commit is left out."""
        runtime = self._runtime(group)
        return {} if runtime is None else runtime.machine.fetch(group, partitions)

    def topics_deleted(self, names: Collection[str]) -> None:
        """Forget what groups committed for topics that are no more, and all machines where it was their own topic."""
        if CONSUMER_OFFSETS in names:
            self._runtimes.clear()
        topic = self._topics.named(CONSUMER_OFFSETS)
        for index in range(len(topic.partitions) if topic else 0):
            partition = self._partitions.find(CONSUMER_OFFSETS, index)
            if partition is not None and partition.log.end_offset:
                self._runtime_of(partition).ask(lambda ticket: TopicsDeleted(ticket, names))

    def _runtime(self, group: str) -> Runtime[Offsets] | None:
        topic = self._topics.named(CONSUMER_OFFSETS)
        if topic is None:
            return None
        partition = self._partitions.find(CONSUMER_OFFSETS, java_hash(group) % len(topic.partitions))
        assert partition is not None, "a topic has all of its partitions"
        return self._runtime_of(partition)

    def _runtime_of(self, partition: Partition) -> Runtime[Offsets]:
        runtime = self._runtimes.get(partition)
        if runtime is None:
            runtime = self._runtimes[partition] = Runtime(
                Offsets,
                partition.log,
                encode=encode_record,
                decode=decode_record,
                clock=self._clock,
                durable=False,
                appended=lambda size: self._appended(partition, size),
            )
        return runtime


def java_hash(text: str) -> int:
    """`abs(String.hashCode())` as Kafka's coordinators compute it, over UTF-16 units; never negative."""
    data = text.encode("utf-16-be", "surrogatepass")
    value = 0
    for unit in range(0, len(data), 2):
        value = (31 * value + (data[unit] << 8 | data[unit + 1])) & 0xFFFF_FFFF
    signed = value - 0x1_0000_0000 if value >= 0x8000_0000 else value
    # The least int has no positive counterpart in Java; Kafka makes it 0.
    return 0 if signed == -0x8000_0000 else abs(signed)
