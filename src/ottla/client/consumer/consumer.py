"""The public blocking consumer.

One thread uses it. Everything runs within its calls, except for the heartbeats of a group member. Only `wakeup` may be
called from another thread.
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
from ottla.client.interface.arguments import checked_columns
from ottla.client.interface.method_names import CONSUMER, explain_names
from ottla.client.runtime.steps import Steps
from ottla.model import EARLIEST, LATEST, OffsetAndMetadata, OffsetAndTimestamp, PartitionInfo, TopicPartition

if TYPE_CHECKING:
    import pyarrow as pa

    from ottla.client.config.typed_settings import PlainConsumerSettings
    from ottla.records.columns import Columns
    from ottla.schemas import Schema, SchemaRegistryClient
    from ottla.schemas.registries import Registries

T = TypeVar("T")


class Consumer(ConsumerFace[K, V]):
    """Read records, as records or as Arrow columns: from topics shared with a group, or from assigned partitions.

    Settings are given with Kafka's dotted names, as keywords, or both: `Consumer({"bootstrap.servers":
    "127.0.0.1:9092"}, auto_offset_reset="earliest")`. Close it, or use it in a `with` statement.
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
        self._registered: Registries | None = None

    def subscribe(
        self,
        topics: Topics,
        listener: RebalanceListener | Any = None,
        *,
        on_assigned: Callback | None = None,
        on_revoked: Callback | None = None,
        on_lost: Callback | None = None,
    ) -> None:
        """Subscribe to topics as a member of the group. Partitions are assigned by the next calls of `poll`.

        `topics` is a list of names, or a compiled pattern that must match whole names, also of topics that are created
        later, or, with `group.protocol = consumer`, a `SubscriptionPattern`, which the broker matches. The listener, an
        object or functions, is called when partitions are assigned or revoked.
        """
        with self._core.open():
            rebalance_listener = refuse_coroutines(listener_of(listener, (on_assigned, on_revoked, on_lost)))
            if not self._subscribe(topics, rebalance_listener):
                self.unsubscribe()

    def unsubscribe(self) -> None:
        """Release all partitions and leave the group."""
        self._run(self._core.unsubscribe())

    def poll(self, timeout: float = 1.0) -> ConsumerRecords[K, V]:
        """Return up to `max.poll.records` records: buffered ones at once, else the first that arrive within `timeout` seconds.

        The result is empty after the timeout, or earlier if only offsets without records were read. The next fetches
        are sent before this method returns, so records arrive while the caller works. Membership is maintained here:
        the first calls join the group, and listeners are called.
        """
        subscriptions = self._core.subscriptions
        subscriptions.begin_poll()
        records = self._intercept(self._run(self._reading.records(timeout)))
        subscriptions.is_returning = False  # the last statement
        return records

    def poll_arrow(
        self,
        timeout: float = 1.0,
        max_bytes: int | None = None,
        *,
        include_headers: bool = False,
        columns: Sequence[str] | None = None,
        value_format: str | None = None,
        key_format: str | None = None,
        registry: SchemaRegistryClient | Mapping[str, Any] | str | None = None,
        value_schema: int | str | Schema | None = None,
        key_schema: int | str | Schema | None = None,
        decode_errors: str = "raise",
    ) -> pa.Table:
        """Return all buffered records, else the first that arrive, as an Arrow table with one chunk per partition.

        `max_bytes` limits the size of the returned data as received from the broker, which may be compressed; the data
        of at least one fetch is returned. The columns are key, value, topic, partition, offset, timestamp,
        timestamp_type, and headers with `include_headers`; or those that `columns` names, in its order.
        `poll_arrow(columns=["value"])` is faster than dropping the other columns afterwards.

        `poll_arrow(value_format="avro", registry=client)` decodes registered values (`ottla.schemas`) to a column of
        structs; other formats are "json" and "protobuf". `value_schema` is the reader's schema: a version of the topic's subject, a schema, or by default the
        newest version. A value that cannot be read raises SerializationError, and the next call returns the same
        records again; with `decode_errors="null"` it is null.
        """
        from ottla.records import arrow

        only = checked_columns(columns, include_headers)
        choices = (key_format, value_format, registry, key_schema, value_schema)
        if choices == (None, None, None, None, None) and decode_errors == "raise":
            chunks = self._poll_columns(timeout, max_bytes, include_headers, only)
            table = arrow.to_table(chunks, include_headers, only=only)
        else:
            from ottla.schemas.registered_tables import registered_formats

            formats = registered_formats(key_format, value_format, key_schema, value_schema, decode_errors)
            if self._registered is None:
                from ottla.schemas.registries import Registries

                self._registered = Registries()
            client, tables = self._registered.open_blocking(registry)
            chunks = self._poll_columns(timeout, max_bytes, include_headers, only, needs_headers=True)
            table = client.run(
                tables.decode(
                    chunks, self.subscription() | {tp.topic for tp in self.assignment()}, formats, include_headers, only
                )
            )
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
        """Return the same as `poll_arrow`, in Ottla's own columns and without Arrow."""
        chunks = self._poll_columns(timeout, max_bytes, include_headers, checked_columns(columns, include_headers))
        self._core.subscriptions.is_returning = False  # the last statement
        return chunks

    def __iter__(self) -> Iterator[ConsumerRecord[K, V]]:
        """Yield all records from the current position on, without end.

        Close the consumer in the loop body to end the loop.

        Within the loop, `commit` and `position` cover exactly the records that the loop has yielded.
        """
        subscriptions = self._core.subscriptions
        while not self._core.closed:
            subscriptions.begin_poll()
            subscriptions.begin_loop(self._intercept(self._run(self._reading.records(1.0))).slices)
            for portion in subscriptions.loop.iter_portions():
                yield from portion

    def position(self, partition: TopicPartition, timeout: float | None = None) -> int:
        """Return the offset that is read next. It is looked up if it is not known yet."""
        return self._run(self._reading.position(partition, timeout))

    def beginning_offsets(
        self, partitions: Iterable[TopicPartition], timeout: float | None = None
    ) -> dict[TopicPartition, int]:
        """Return the first offset of each partition."""
        return self._run(self._queries.list_offsets(EARLIEST, partitions, timeout))

    def end_offsets(
        self, partitions: Iterable[TopicPartition], timeout: float | None = None
    ) -> dict[TopicPartition, int]:
        """Return the offset after the last record of each partition."""
        return self._run(self._queries.list_offsets(LATEST, partitions, timeout))

    def offsets_for_times(
        self, timestamps: Mapping[TopicPartition, int], timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """Return the first offset at or after each timestamp in milliseconds; None if there is none."""
        return self._run(self._queries.offsets_for_times(timestamps, timeout))

    def partitions_for(self, topic: str, timeout: float | None = None) -> list[PartitionInfo]:
        """Return the partitions of a topic with their leaders and replicas; an empty list if the topic does not exist."""
        return self._run(self._queries.partitions_for(topic, timeout))

    def topics(self, timeout: float | None = None) -> set[str]:
        """Return the names of all topics that this client may see."""
        return self._run(self._queries.topics(timeout))

    def commit(self, offsets: Offsets | None = None, timeout: float | None = None) -> None:
        """Commit these offsets, or all positions. Returns when the coordinator has stored them.

        Each offset is that of the next record to read. Retriable errors are retried for up to `timeout` seconds. Raises
        CommitFailedError if the group has reassigned this member's partitions.
        """
        with self._core.open():
            self._run(self._commit(offsets, timeout))

    def committed(
        self, partitions: Iterable[TopicPartition], timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """Return the committed offset of each partition; None if there is none."""
        return self._run(self._queries.committed(partitions, timeout))

    def client_instance_id(self, timeout: float | None = None) -> UUID:
        """Return the id that brokers assigned to this client for pushing metrics (KIP-714); it does not change until the client is closed.

        The id is requested within `timeout` seconds, by default `default.api.timeout.ms`. Raises IllegalStateError with
        `enable.metrics.push = false`, UnsupportedVersionError if the broker does not accept metrics, KafkaTimeoutError
        if no broker responds.
        """
        return self._run(self._core.client_instance_id(timeout))

    def close(self, timeout: float | None = None) -> None:
        """Commit if auto-commit is enabled, leave the group and close all connections, within `timeout` seconds.

        The default is 30 seconds. After Ctrl-C it is less than one second. `close` may be called again.
        """
        with self._core.guard:
            if not self._core.closed:
                self._core.open()
                self._core.client.run(self._core.close(timeout), wakeable=False)
            if self._registered is not None:
                self._registered.close_blocking()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self._core.subscriptions.drop_unprocessed()
            if issubclass(kind, KeyboardInterrupt):
                self._core.guard.interrupted = True  # also if the interrupt came between two calls
        self.close()

    def _poll_columns(
        self,
        timeout: float,
        max_bytes: int | None,
        include_headers: bool,
        only: tuple[str, ...] | None,
        needs_headers: bool = False,
    ) -> list[tuple[TopicPartition, Columns]]:
        return self._run(self._begin_columns(timeout, max_bytes, include_headers, only, needs_headers))

    def _run(self, steps: Steps[T]) -> T:
        try:
            with self._core.open():
                return self._core.client.run(steps)
        except KeyboardInterrupt as interrupt:
            raise interrupt.with_traceback(None) from None  # hides internal frames from the traceback


explain_names(Consumer, CONSUMER)
