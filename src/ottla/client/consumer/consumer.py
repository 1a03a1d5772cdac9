"""The consumer whose calls block: what users call.

One thread uses it; everything happens in its calls, but for the heartbeats of a group's member. Only `wakeup` may come
from another thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar, Unpack, overload
from uuid import UUID

from ottla.client.consumer.consumer_face import ConsumerFace, Offsets, PlainSetting, Topics
from ottla.client.consumer.group.rebalance_listener import Callback, RebalanceListener, listener_of, refuse_coroutines
from ottla.client.consumer.records import ConsumerRecords
from ottla.client.consumer.typed_record import ConsumerRecord, K, V
from ottla.client.interface.arguments import chosen_columns
from ottla.client.interface.method_names import CONSUMER, explain_names
from ottla.client.runtime.steps import Steps
from ottla.model import EARLIEST, LATEST, OffsetAndMetadata, OffsetAndTimestamp, PartitionInfo, TopicPartition

if TYPE_CHECKING:
    import pyarrow as pa

    from ottla.client.config.typed_settings import PlainConsumerSettings
    from ottla.records.columns import Columns

T = TypeVar("T")


class Consumer(ConsumerFace[K, V]):
    """Reads records, as records or as Arrow columns: of topics shared with a group, or of assigned partitions.

    Settings come as Kafka's dotted names, as keywords, or both:
    `Consumer({"bootstrap.servers": "127.0.0.1:9092"}, auto_offset_reset="earliest")`. Close it, or use it in a `with`
    statement.
    """

    @overload
    def __init__(
        self,
        config: Mapping[str, PlainSetting] | None = None,
        /,
        *,
        key_deserializer: Callable[[bytes], K] | None = None,
        value_deserializer: Callable[[bytes], V] | None = None,
        **settings: Unpack[PlainConsumerSettings],
    ) -> None: ...

    @overload
    def __init__(
        self: Consumer[Any, Any],
        config: Mapping[str, Any],
        /,
        *,
        key_deserializer: Callable[[bytes], K] | None = None,
        value_deserializer: Callable[[bytes], V] | None = None,
        **settings: Unpack[PlainConsumerSettings],
    ) -> None: ...

    def __init__(self, config: Mapping[str, Any] | None = None, /, **keywords: Any) -> None:
        super().__init__(config, **keywords)

    def subscribe(
        self,
        topics: Topics,
        listener: RebalanceListener | Any = None,
        *,
        on_assigned: Callback | None = None,
        on_revoked: Callback | None = None,
        on_lost: Callback | None = None,
    ) -> None:
        """Share these topics with the other members of the group; partitions come with the next calls of `poll`.

        `topics` is a list of names, or a compiled pattern of which every whole name it matches is meant, also of topics
        that are made later; or, with `group.protocol = consumer`, a `SubscriptionPattern`, which the broker matches. The listener, an object or functions, hears of partitions that come and go.
        """
        with self._core.open():
            heard = refuse_coroutines(listener_of(listener, (on_assigned, on_revoked, on_lost)))
            if not self._subscribe(topics, heard):
                self.unsubscribe()

    def unsubscribe(self) -> None:
        """Give all partitions up, and leave the group."""
        self._run(self._core.unsubscribe())

    def poll(self, timeout: float = 1.0) -> ConsumerRecords[K, V]:
        """Up to `max.poll.records` records: what is buffered, else the first that arrives within `timeout` seconds.

        The next fetches are on their way before this returns. Empty at the timeout. A subscriber's membership is kept
        up here: the first calls join the group, and listeners are called.
        """
        subscriptions = self._core.subscriptions
        subscriptions.begin_poll()
        records = self._shown(self._run(self._reading.records(timeout)))
        subscriptions.is_returning = False  # the last statement
        return records

    def poll_arrow(
        self,
        timeout: float = 1.0,
        max_bytes: int | None = None,
        *,
        include_headers: bool = False,
        columns: Sequence[str] | None = None,
    ) -> pa.Table:
        """Everything that is buffered, else the first that arrives, as an Arrow table with a chunk per partition.

        `max_bytes` bounds it by bytes as fetched, of which at least one partition's share is returned. Columns: key,
        value, topic, partition, offset, timestamp, timestamp_type, and headers if they are asked for; or those that
        `columns` names, in its order: `poll_arrow(columns=["value"])` is quicker than leaving the others out afterwards.
        """
        from ottla.records import arrow

        only = chosen_columns(columns, include_headers)
        chunks = self._poll_columns(timeout, max_bytes, include_headers, only)
        table = arrow.to_table(chunks, include_headers, only=only)
        self._core.subscriptions.is_returning = False  # the last statement
        return table

    def poll_columns(
        self,
        timeout: float = 1.0,
        max_bytes: int | None = None,
        *,
        include_headers: bool = False,
        columns: Sequence[str] | None = None,
    ) -> list[tuple[TopicPartition, Columns]]:
        """As `poll_arrow`, in our own columns and without Arrow."""
        chunks = self._poll_columns(timeout, max_bytes, include_headers, chosen_columns(columns, include_headers))
        self._core.subscriptions.is_returning = False  # the last statement
        return chunks

    def __iter__(self) -> Iterator[ConsumerRecord[K, V]]:
        """All records from here on, without end; the loop ends when the consumer is closed inside it.

        In the loop, `commit` and `position` count the records that it has had, and no others.
        """
        subscriptions = self._core.subscriptions
        while not self._core.closed:
            subscriptions.begin_poll()
            subscriptions.begin_loop(self._shown(self._run(self._reading.records(1.0))).slices)
            for portion in subscriptions.loop.portions():
                yield from portion

    def position(self, partition: TopicPartition, timeout: float | None = None) -> int:
        """The offset that is read next; looks it up when it is not known yet."""
        return self._run(self._reading.position(partition, timeout))

    def beginning_offsets(
        self, partitions: Iterable[TopicPartition], timeout: float | None = None
    ) -> dict[TopicPartition, int]:
        """The first offset of each partition."""
        return self._run(self._queries.at(EARLIEST, partitions, timeout))

    def end_offsets(
        self, partitions: Iterable[TopicPartition], timeout: float | None = None
    ) -> dict[TopicPartition, int]:
        """The offset after the last record of each partition."""
        return self._run(self._queries.at(LATEST, partitions, timeout))

    def offsets_for_times(
        self, timestamps: Mapping[TopicPartition, int], timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """The first record at or after each time in milliseconds; None where there is none."""
        return self._run(self._queries.for_times(timestamps, timeout))

    def partitions_for(self, topic: str, timeout: float | None = None) -> list[PartitionInfo]:
        """The topic's partitions with their leaders and replicas; empty when there is no such topic."""
        return self._run(self._queries.partitions_for(topic, timeout))

    def topics(self, timeout: float | None = None) -> set[str]:
        """The names of all topics this client may see."""
        return self._run(self._queries.topics(timeout))

    def commit(self, offsets: Offsets | None = None, timeout: float | None = None) -> None:
        """Commit these offsets, the next ones to read, or else all positions; returns when the coordinator has them.

        Tries again what may succeed later, up to `timeout` seconds. CommitFailedError: the group has given this
        member's partitions to others.
        """
        with self._core.open():
            self._run(self._commit(offsets, timeout))

    def committed(
        self, partitions: Iterable[TopicPartition], timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """What the group has committed for each partition; None where it has nothing."""
        return self._run(self._queries.committed(partitions, timeout))

    def client_instance_id(self, timeout: float | None = None) -> UUID:
        """The id under which brokers know this client where it pushes metrics to them (KIP-714), the same until it is closed.

        Asked for within `timeout` seconds, left out: `default.api.timeout.ms`. IllegalStateError with `enable.metrics.push = false`,
        UnsupportedVersionError where the broker takes no metrics, KafkaTimeoutError where none answers.
        """
        return self._run(self._core.client_instance_id(timeout))

    def close(self, timeout: float | None = None) -> None:
        """Commit if that is automatic, leave the group and close all connections, within `timeout` seconds.

        30 unless told, less than one after Ctrl-C. May be called again.
        """
        with self._core.guard:
            if not self._core.closed:
                self._core.open()
                self._core.client.run(self._core.close(timeout), wakeable=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self._core.subscriptions.drop_unprocessed()
            if issubclass(kind, KeyboardInterrupt):
                self._core.guard.interrupted = True  # also where it came between two calls
        self.close()

    def _poll_columns(
        self, timeout: float, max_bytes: int | None, include_headers: bool, only: tuple[str, ...] | None
    ) -> list[tuple[TopicPartition, Columns]]:
        with_headers = include_headers if only is None else "headers" in only
        self._core.subscriptions.begin_poll()
        return self._run(self._reading.columns(timeout, max_bytes, with_headers=with_headers, only=only))

    def _run(self, steps: Steps[T]) -> T:
        try:
            with self._core.open():
                return self._core.client.run(steps)
        except KeyboardInterrupt as interrupt:
            raise interrupt.with_traceback(None) from None  # without the frames in here, which no user wants to read


explain_names(Consumer, CONSUMER)
