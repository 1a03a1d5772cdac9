"""Where records come in: checked, serialised, given a partition and queued, on the caller's thread."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from time import time_ns
from typing import Any

from ottla.client.arguments import LAST_OFFSET, LAST_PARTITION, checked_number, checked_topic
from ottla.client.cluster import Cluster, TopicInfo
from ottla.client.metadata import Metadata
from ottla.client.producer.config import ProducerConfig
from ottla.client.producer.future import RecordFuture
from ottla.client.producer.interceptors import ProducerInterceptors, ProducerRecord
from ottla.client.producer.partitioner import ANY, Partitioner, anywhere, by_key
from ottla.client.producer.produce_request_result import OnDelivery
from ottla.client.producer.producer_batch import upper_bound_bytes
from ottla.client.producer.record_accumulator import CLOSED, RecordAccumulator
from ottla.client.producer.record_parts import checked_callback, checked_headers, checked_timestamp, serialized
from ottla.client.producer.sender import Sender
from ottla.client.producer.transaction_manager import TransactionManager
from ottla.clock import Clock
from ottla.errors import (
    ErrorCode,
    IllegalStateError,
    RecordTooLargeError,
    error_for,
)
from ottla.model import Header
from ottla.records.murmur2 import partition_for

NANOS_PER_MILLI = 1_000_000
HOPELESS = frozenset({ErrorCode.INVALID_TOPIC_EXCEPTION, ErrorCode.TOPIC_AUTHORIZATION_FAILED})
"""Answers about a topic that waiting does not change."""


class KnownTopics:
    """How many partitions the topics had at one moment; looked up once for each and not for each record."""

    __slots__ = ("cluster", "partitions")

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.partitions: dict[str, int] = {}


class RecordIntake:
    """The way of a record from its sender to the accumulator."""

    def __init__(
        self,
        config: ProducerConfig,
        clock: Clock,
        metadata: Metadata,
        accumulator: RecordAccumulator,
        sender: Sender,
        transactions: TransactionManager | None,
        partitioner: Partitioner,
        interceptors: ProducerInterceptors | None,
    ) -> None:
        self._max_block = config.max_block_ms / 1000
        """Seconds."""
        self._max_record_bytes = config.max_record_bytes
        self._max_request_size = config.max_request_size
        self._key_serializer = config.key_serializer
        self._value_serializer = config.value_serializer
        self._partitioner: Any = partitioner
        self._interceptors = interceptors
        self._clock = clock
        self._metadata = metadata
        self._heard_by: object = None
        """The callback that was given last, and found well: most producers have one."""
        self._known = KnownTopics(metadata.cluster)
        self._accumulator = accumulator
        self._sender = sender
        self._wake: Callable[[], None] = sender.wakeup
        self._transactional = None if config.transactional_id is None else transactions

    def send(
        self,
        topic: str,
        value: Any = None,
        *,
        key: Any = None,
        partition: int | None = None,
        timestamp: int | None = None,
        headers: Iterable[Header] | Mapping[str, bytes | None] | None = None,
        on_delivery: OnDelivery | None = None,
    ) -> RecordFuture:
        """Queue a record and return its future at once; `on_delivery(metadata, error)` runs on the sender's thread.

        Waits only for a topic's first metadata and for buffer memory, up to `max.block.ms`, and then raises. What is
        wrong with the record itself is raised at once, as RecordTooLargeError and SerializationError are, and the
        callback is not called. `timestamp` is in milliseconds; left out it is now.
        """
        if on_delivery is not None and on_delivery is not self._heard_by:
            checked_callback(on_delivery)
            self._heard_by = on_delivery
        if self._interceptors is not None:
            record = ProducerRecord(topic, value, key, partition, timestamp, headers)
            changed = self._interceptors.on_send(record, on_delivery)
            topic, value, key, partition, timestamp, headers, on_delivery = changed
        if self._transactional is not None:
            self._transactional.check_send()
        if key is not None or self._key_serializer is not None:
            key = serialized("key", key, self._key_serializer)
        if self._value_serializer is not None or type(value) is not bytes:
            value = serialized("value", value, self._value_serializer)
        pairs = () if headers is None else checked_headers(headers)
        target = ANY if partition is None else partition_of(partition)
        count = self._partitions_of(topic, target)
        size = upper_bound_bytes(key, value, pairs)
        if size > self._max_record_bytes:
            raise self._refused(topic, size)
        if partition is None:
            target = self._choose(topic, key, value, count)
        moment = now_ms() if timestamp is None else moment_of(timestamp)
        future = self._accumulator.append(
            topic, target, count, moment, key, value, pairs, self._max_block, self._wake, on_delivery
        )
        if self._transactional is not None and self._transactional.send_to(future.topic_partition):
            self._wake()  # the sender may have looked at the record already, and left it for it had no transaction yet
        return future

    def _partitions_of(self, topic: str, partition: int) -> int:
        """How many partitions the topic has, once it is known (and has this one)."""
        known = self._known
        cluster = self._metadata.cluster
        if known.cluster is not cluster:
            known = self._known = KnownTopics(cluster)
        count = known.partitions.get(topic, 0)
        if count <= max(partition, 0):
            info = cluster.topics.get(topic)
            if info is None or partition >= len(info.partitions):
                return len(self._wait_on_metadata(topic, None if partition < 0 else partition).partitions)
            count = known.partitions[topic] = len(info.partitions)
        return count

    def _choose(self, topic: str, key: bytes | None, value: bytes | None, count: int) -> int:
        """The partition by the producer's partitioner; `ANY` leaves it to the accumulator."""
        partitioner = self._partitioner
        if partitioner is by_key:
            return ANY if key is None else partition_for(key, count)
        if partitioner is anywhere:
            return ANY
        partition: int = partitioner(topic, key, value, count)
        if partition >= count:
            raise ValueError(f"the partitioner chose partition {partition} of {topic!r}, which has {count}")
        return partition

    def _wait_on_metadata(self, topic: str, partition: int | None) -> TopicInfo:
        """The topic, once it is known (and has the partition); raises when that takes longer than `max.block.ms`."""
        checked_topic(topic)
        if self._accumulator.closed:
            raise IllegalStateError(CLOSED)
        deadline = self._clock.monotonic() + self._max_block
        while True:
            now = self._clock.monotonic()
            version = self._metadata.version
            self._metadata.want(topic, now)
            info = self._metadata.cluster.topics.get(topic)
            if info is not None and (partition is None or partition < len(info.partitions)):
                return info
            code = self._metadata.cluster.errors.get(topic, 0)
            if code in HOPELESS:
                raise error_for(code, f"topic {topic!r}")
            self._metadata.request_update()
            self._sender.wakeup_for_metadata()
            if now >= deadline or not self._metadata.await_update(version, deadline - now):
                raise self._sender.missing(topic, partition, info)

    def _refused(self, topic: str, size: int) -> RecordTooLargeError:
        """The error of a record that is too large, which its transaction and the interceptors hear of too."""
        error = self._too_large(topic, size)
        if self._transactional is not None:
            self._transactional.fail_transaction(error)
        if self._interceptors is not None:
            self._interceptors.acknowledged(None, None, error)
        return error

    def _too_large(self, topic: str, size: int) -> RecordTooLargeError:
        setting = "max.request.size" if size > self._max_request_size else "buffer.memory"
        text = f"a record for {topic!r} takes up to {size} bytes, more than {setting} = {self._max_record_bytes}"
        return RecordTooLargeError(ErrorCode.MESSAGE_TOO_LARGE, text)


def partition_of(number: Any) -> int:
    """The number of a partition, checked."""
    return number if type(number) is int and 0 <= number <= LAST_PARTITION else checked_number(number)


def now_ms() -> int:
    """Milliseconds since the epoch."""
    nanos = time_ns()
    return nanos // NANOS_PER_MILLI


def moment_of(timestamp: Any) -> int:
    """Milliseconds since the epoch, checked."""
    return timestamp if type(timestamp) is int and 0 <= timestamp <= LAST_OFFSET else checked_timestamp(timestamp)
