"""Checks, serialises, partitions and queues records, on the caller's thread.

Nothing here waits. If the topic is unknown or there is no memory, the serialised record is returned as a `HeldRecord`:
`ProducerCore.queue_record` waits and queues it, so that interceptors and serializers run once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ottla import clock
from ottla.client.interface.arguments import LAST_OFFSET, LAST_PARTITION, checked_number, checked_topic
from ottla.client.metadata.metadata import Metadata
from ottla.client.metadata.metadata_snapshot import MetadataSnapshot
from ottla.client.producer.buffer_pool import MemoryClaim
from ottla.client.producer.config import ProducerConfig
from ottla.client.producer.future import RecordFuture
from ottla.client.producer.interceptors import ProducerInterceptors, ProducerRecord
from ottla.client.producer.partitioner import ANY, Partitioner, choose_any, choose_by_key
from ottla.client.producer.produce_request_result import OnDelivery
from ottla.client.producer.producer_batch import upper_bound_bytes
from ottla.client.producer.record_accumulator import CLOSED, RecordAccumulator
from ottla.client.producer.record_parts import (
    ContextSerializers,
    checked_callback,
    checked_headers,
    checked_timestamp,
    serialized,
    with_context,
)
from ottla.client.producer.transaction_manager import TransactionManager
from ottla.errors import ErrorCode, IllegalStateError, RecordTooLargeError
from ottla.model import Header
from ottla.records.murmur2 import partition_for


class KnownTopics:
    """The partition counts of topics in one `MetadataSnapshot`, looked up once per topic instead of once per record."""

    __slots__ = ("cluster", "partitions")

    def __init__(self, cluster: MetadataSnapshot) -> None:
        self.cluster = cluster
        self.partitions: dict[str, int] = {}


class HeldRecord:
    """A checked and serialised record that has to wait."""

    __slots__ = ("headers", "key", "on_delivery", "partition", "timestamp", "topic", "value")

    def __init__(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None,
        partition: int,
        timestamp: int | None,
        headers: tuple[Header, ...],
        on_delivery: OnDelivery | None,
    ) -> None:
        self.topic = topic
        self.value = value
        self.key = key
        self.partition = partition
        """`ANY` if it is still to be chosen."""
        self.timestamp = timestamp
        """None: the time at which it is queued."""
        self.headers = headers
        self.on_delivery = on_delivery


class RecordIntake:
    """Moves records from `send` to the accumulator."""

    def __init__(
        self,
        config: ProducerConfig,
        metadata: Metadata,
        accumulator: RecordAccumulator,
        transactions: TransactionManager | None,
        partitioner: Partitioner,
        interceptors: ProducerInterceptors | None,
    ) -> None:
        self._max_record_bytes = config.max_record_bytes
        self._max_request_size = config.max_request_size
        self._contextual: ContextSerializers | None = None
        key, value = with_context(config.key_serializer), with_context(config.value_serializer)
        if key is not None or value is not None:
            self._contextual = ContextSerializers(key, value)
        self._key_serializer = config.key_serializer if key is None else None
        self._value_serializer = config.value_serializer if value is None else None
        self._partitioner: Any = partitioner
        self._interceptors = interceptors
        self._metadata = metadata
        self._checked_callback: object = None
        """The last checked callback: most producers use one."""
        self._known = KnownTopics(metadata.cluster)
        self._accumulator = accumulator
        self._transactional = None if config.transactional_id is None else transactions

    def offer(
        self,
        topic: str,
        value: Any,
        key: Any,
        partition: int | None,
        timestamp: int | None,
        headers: Iterable[Header] | Mapping[str, bytes | None] | None,
        on_delivery: OnDelivery | None,
    ) -> RecordFuture | HeldRecord:
        """Queue a record and return its future, or return a `HeldRecord` if it has to wait."""
        if type(topic) is not str:
            checked_topic(topic)
        if on_delivery is not None and on_delivery is not self._checked_callback:
            checked_callback(on_delivery)
            self._checked_callback = on_delivery
        if self._interceptors is not None:
            record = ProducerRecord(topic, value, key, partition, timestamp, headers, on_delivery)
            topic, value, key, partition, timestamp, headers, on_delivery = self._interceptors.on_send(record)
        if self._transactional is not None:
            if self._accumulator.closed:
                raise IllegalStateError(CLOSED)
            self._transactional.check_send()
        if self._contextual is not None:
            key, value, headers = self._contextual.serialize(topic, key, value, headers)
        if key is not None or self._key_serializer is not None:
            key = serialized("key", key, self._key_serializer)
        if self._value_serializer is not None or type(value) is not bytes:
            value = serialized("value", value, self._value_serializer)
        pairs = () if headers is None else checked_headers(headers)
        target = ANY if partition is None else partition_of(partition)
        future = self._append(topic, value, key, target, timestamp, pairs, on_delivery, None)
        if future is None:
            return HeldRecord(topic, value, key, target, timestamp, pairs, on_delivery)
        return future

    def offer_again(self, held: HeldRecord, claim: MemoryClaim | None = None) -> RecordFuture | None:
        """Queue a record that had to wait, with its granted memory; return None if it has to wait again."""
        return self._append(
            held.topic, held.value, held.key, held.partition, held.timestamp, held.headers, held.on_delivery, claim
        )

    def too_large_error(self, topic: str, size: int) -> RecordTooLargeError:
        """Return the error for a record, or a batch of them, that is too large for any request."""
        setting = "max.request.size" if size > self._max_request_size else "buffer.memory"
        text = f"a record for {topic!r} takes up to {size} bytes, more than {setting} = {self._max_record_bytes}"
        return RecordTooLargeError(ErrorCode.MESSAGE_TOO_LARGE, text)

    def _append(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None,
        partition: int,
        timestamp: int | None,
        headers: tuple[Header, ...],
        on_delivery: OnDelivery | None,
        claim: MemoryClaim | None,
    ) -> RecordFuture | None:
        count = self._count_partitions(topic, partition)
        if not count:
            return None
        size = upper_bound_bytes(key, value, headers)
        if size > self._max_record_bytes:
            raise self._report_too_large(topic, size)
        if partition < 0:
            partition = self._choose_partition(topic, key, value, count)
        moment = clock.wall_ms() if timestamp is None else moment_of(timestamp)
        future = self._accumulator.append(topic, partition, count, moment, key, value, headers, on_delivery, claim)
        if (
            self._transactional is not None
            and future is not None
            and self._transactional.add_partition(future.topic_partition)
        ):
            self._accumulator.wake_sender()  # it may have skipped the record: its partition was not in the transaction yet
        return future

    def _count_partitions(self, topic: str, partition: int) -> int:
        """Return the number of partitions of a topic; 0 if the topic or the partition is unknown."""
        known = self._known
        cluster = self._metadata.cluster
        if known.cluster is not cluster:
            known = self._known = KnownTopics(cluster)
        count = known.partitions.get(topic, 0)
        if count <= max(partition, 0):
            info = cluster.topics.get(topic)
            if info is None or partition >= len(info.partitions):
                return 0
            count = known.partitions[topic] = len(info.partitions)
        return count

    def _choose_partition(self, topic: str, key: bytes | None, value: bytes | None, count: int) -> int:
        """Return the partition that the partitioner chooses; `ANY` if the accumulator chooses it."""
        partitioner = self._partitioner
        if partitioner is choose_by_key:
            return ANY if key is None else partition_for(key, count)
        if partitioner is choose_any:
            return ANY
        partition: int = partitioner(topic, key, value, count)
        if partition >= count:
            raise ValueError(f"the partitioner chose partition {partition} of {topic!r}, which has {count}")
        return partition

    def _report_too_large(self, topic: str, size: int) -> RecordTooLargeError:
        """Return the error for a record that is too large; fail its transaction and call the interceptors."""
        error = self.too_large_error(topic, size)
        if self._transactional is not None:
            self._transactional.fail_transaction(error)
        if self._interceptors is not None:
            self._interceptors.acknowledged(None, None, error)
        return error


def partition_of(number: Any) -> int:
    """Return a checked partition number."""
    return number if type(number) is int and 0 <= number <= LAST_PARTITION else checked_number(number)


def moment_of(timestamp: Any) -> int:
    """Return a checked timestamp in milliseconds since 1970."""
    return timestamp if type(timestamp) is int and 0 <= timestamp <= LAST_OFFSET else checked_timestamp(timestamp)
