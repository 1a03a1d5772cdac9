"""The consumer for asyncio: the same core as `ottla.Consumer`, driven by the event loop.

It belongs to the tasks of one event loop. One task polls; others may commit, seek and query meanwhile. A cancelled call
loses nothing: records that it did not return are returned by the next call.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar, Unpack, overload
from uuid import UUID

from ottla.aio.listener import CoroutineListener
from ottla.aio.pump import Pump
from ottla.client.consumer.consumer_face import ConsumerFace, Offsets, PlainSetting, Topics
from ottla.client.consumer.group.rebalance_listener import Callback, RebalanceListener, listener_of
from ottla.client.consumer.records import ConsumerRecords
from ottla.client.consumer.typed_record import ConsumerRecord, K, V
from ottla.client.interface.arguments import checked_columns, maybe_timeout
from ottla.client.interface.method_names import CONSUMER, explain_names
from ottla.client.runtime.steps import Steps
from ottla.errors import IllegalStateError
from ottla.model import EARLIEST, LATEST, OffsetAndMetadata, OffsetAndTimestamp, PartitionInfo, TopicPartition

if TYPE_CHECKING:
    import pyarrow as pa

    from ottla.client.config.typed_settings import PlainConsumerSettings
    from ottla.records.columns import Columns
    from ottla.schemas import AsyncSchemaRegistryClient, Schema
    from ottla.schemas.registries import Registries

T = TypeVar("T")


class Consumer(ConsumerFace[K, V]):
    """Read records in asyncio. Settings, names and behaviour are those of `ottla.Consumer`.

    Methods that wait are coroutines, the others are plain methods. Close it, or use it in an `async with` statement.
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
        self._pump = Pump(self._core.client)
        self._polling = False
        self._registered: Registries | None = None
        self._closing: asyncio.Task[None] | None = None

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

        The methods of the listener may be coroutines. The rebalance waits until they have ended, even if the `poll`
        that started them is cancelled or has ended; meanwhile no records are returned.
        """
        with self._core.open():
            rebalance_listener = listener_of(listener, (on_assigned, on_revoked, on_lost))
            if not self._subscribe(topics, CoroutineListener(rebalance_listener, self._pump.waiters.resume)):
                raise ValueError("topics is empty: name a topic, or await unsubscribe()")

    async def unsubscribe(self) -> None:
        """Give up all partitions and leave the group."""
        await self._run(self._core.unsubscribe())

    async def poll(self, timeout: float = 1.0) -> ConsumerRecords[K, V]:
        """Return up to `max.poll.records` records: those buffered, else the first that arrive within `timeout` seconds."""
        subscriptions = self._core.subscriptions
        with self._only_one():
            subscriptions.begin_poll()
            records = self._intercept(await self._poll(self._reading.records(timeout)))
        subscriptions.is_returning = False  # the last statement
        return records

    async def poll_arrow(
        self,
        timeout: float = 1.0,
        max_bytes: int | None = None,
        *,
        include_headers: bool = False,
        columns: Sequence[str] | None = None,
        value_format: str | None = None,
        key_format: str | None = None,
        registry: AsyncSchemaRegistryClient | Mapping[str, Any] | str | None = None,
        value_schema: int | str | Schema | None = None,
        key_schema: int | str | Schema | None = None,
        decode_errors: str = "raise",
    ) -> pa.Table:
        """Return all buffered records, else the first that arrive, as an Arrow table with one chunk per partition.

        Columns, limits and the decoding of registered values are those of `ottla.Consumer.poll_arrow`.
        """
        from ottla.records import arrow

        only = checked_columns(columns, include_headers)
        choices = (key_format, value_format, registry, key_schema, value_schema)
        if choices == (None, None, None, None, None) and decode_errors == "raise":
            chunks = await self._poll_columns(timeout, max_bytes, include_headers, only)
            table = arrow.to_table(chunks, include_headers, only=only)
        else:
            from ottla.schemas.registered_tables import registered_formats

            formats = registered_formats(key_format, value_format, key_schema, value_schema, decode_errors)
            if self._registered is None:
                from ottla.schemas.registries import Registries

                self._registered = Registries()
            client, tables = self._registered.open_async(registry)
            chunks = await self._poll_columns(timeout, max_bytes, include_headers, only, needs_headers=True)
            table = await client.run(
                tables.decode(
                    chunks, self.subscription() | {tp.topic for tp in self.assignment()}, formats, include_headers, only
                )
            )
        self._core.subscriptions.is_returning = False  # the last statement
        return table

    async def poll_columns(
        self,
        timeout: float = 1.0,
        max_bytes: int | None = None,
        *,
        include_headers: bool = False,
        columns: Sequence[str] | None = None,
    ) -> list[tuple[TopicPartition, Columns]]:
        """Return the same as `poll_arrow`, in Ottla's own columns and without Arrow."""
        only = checked_columns(columns, include_headers)
        chunks = await self._poll_columns(timeout, max_bytes, include_headers, only)
        self._core.subscriptions.is_returning = False  # the last statement
        return chunks

    async def _poll_columns(
        self,
        timeout: float,
        max_bytes: int | None,
        include_headers: bool,
        only: tuple[str, ...] | None,
        needs_headers: bool = False,
    ) -> list[tuple[TopicPartition, Columns]]:
        with self._only_one():
            return await self._poll(self._begin_columns(timeout, max_bytes, include_headers, only, needs_headers))

    async def __aiter__(self) -> AsyncIterator[ConsumerRecord[K, V]]:
        """Yield all records from the current position on, without end. The loop ends when the consumer is closed.

        Within the loop, `commit` and `position` cover exactly the records that the loop has yielded.
        """
        subscriptions = self._core.subscriptions
        while not self._core.closed:
            with self._only_one():
                subscriptions.begin_poll()
                subscriptions.begin_loop(self._intercept(await self._poll(self._reading.records(1.0))).slices)
            for portion in subscriptions.loop.iter_portions():
                for record in portion:
                    yield record

    async def position(self, partition: TopicPartition, timeout: float | None = None) -> int:
        """Return the offset that is read next. It is looked up if it is not known yet."""
        return await self._run(self._reading.position(partition, timeout))

    async def beginning_offsets(
        self, partitions: Iterable[TopicPartition], timeout: float | None = None
    ) -> dict[TopicPartition, int]:
        """Return the first offset of each partition."""
        return await self._run(self._queries.list_offsets(EARLIEST, partitions, timeout))

    async def end_offsets(
        self, partitions: Iterable[TopicPartition], timeout: float | None = None
    ) -> dict[TopicPartition, int]:
        """Return the offset after the last record of each partition."""
        return await self._run(self._queries.list_offsets(LATEST, partitions, timeout))

    async def offsets_for_times(
        self, timestamps: Mapping[TopicPartition, int], timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """Return the first offset at or after each timestamp in milliseconds; None if there is none."""
        return await self._run(self._queries.offsets_for_times(timestamps, timeout))

    async def partitions_for(self, topic: str, timeout: float | None = None) -> list[PartitionInfo]:
        """Return the partitions of a topic with their leaders and replicas; an empty list if the topic does not exist."""
        return await self._run(self._queries.partitions_for(topic, timeout))

    async def topics(self, timeout: float | None = None) -> set[str]:
        """Return the names of all topics that this client may see."""
        return await self._run(self._queries.topics(timeout))

    async def commit(self, offsets: Offsets | None = None, timeout: float | None = None) -> None:
        """Commit these offsets, which are the next to read, or all positions.

        Returns when the coordinator has stored them.

        After a cancelled call, the commit may or may not have reached the coordinator.
        """
        with self._core.open():
            steps = self._commit(offsets, timeout)
        await self._run(steps)

    async def committed(
        self, partitions: Iterable[TopicPartition], timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """Return the committed offset of each partition; None if there is none."""
        return await self._run(self._queries.committed(partitions, timeout))

    async def client_instance_id(self, timeout: float | None = None) -> UUID:
        """Return the id that brokers assigned to this client for pushing metrics, as `ottla.Consumer` does."""
        return await self._run(self._core.client_instance_id(timeout))

    async def close(self, timeout: float | None = None) -> None:
        """Commit if auto-commit is enabled, leave the group and close all connections, within `timeout` seconds, by default 30.

        Closing continues if the call is cancelled; another call waits for the same end.
        """
        maybe_timeout(timeout)
        if self._closing is None:
            self._closing = asyncio.ensure_future(self._close(timeout))
        await asyncio.shield(self._closing)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self._core.subscriptions.drop_unprocessed()
        await self.close()

    async def _close(self, timeout: float | None) -> None:
        if not self._core.closed:
            self._core.open()
            await self._pump.run(self._core.close(timeout), wakeable=False)
        if self._registered is not None:
            await self._registered.close_async()

    async def _poll(self, steps: Steps[T]) -> T:
        """Yield to the event loop before the poll, so that a task that always finds buffered records does not block the others.

        The pause comes before and never after the poll, because a task cancelled after it would lose the records.
        """
        await asyncio.sleep(0)
        return await self._run(steps)

    async def _run(self, steps: Steps[T]) -> T:
        with self._core.open():
            return await self._pump.run(steps)

    @contextmanager
    def _only_one(self) -> Iterator[None]:
        """Reject a second task that polls: the tasks would split the records between them at random."""
        if self._polling:
            raise IllegalStateError(
                "another task is polling this consumer; poll from one task, or create a second consumer"
            )
        self._polling = True
        try:
            yield
        finally:
            self._polling = False


explain_names(Consumer, CONSUMER)
