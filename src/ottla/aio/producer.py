"""The producer for asyncio: the same core as `ottla.Producer`, driven by the event loop, without a thread.

It belongs to the tasks of one event loop.
"""

from __future__ import annotations

import asyncio
import logging
from asyncio import get_running_loop
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Unpack, cast
from uuid import UUID

from ottla.aio.loop_sender import LoopSender
from ottla.client.interface.arguments import maybe_timeout
from ottla.client.interface.method_names import PRODUCER, explain_names
from ottla.client.producer.future import RecordFuture
from ottla.client.producer.produce_request_result import OnDelivery
from ottla.client.producer.producer_core import ProducerCore
from ottla.client.producer.producer_face import ProducerFace
from ottla.client.producer.table_receipt import TableReceipt
from ottla.errors import TransactionAbortableError, UndeliveredError
from ottla.model import FOREVER, Header, OffsetAndMetadata, PartitionInfo, TopicPartition

if TYPE_CHECKING:
    from ottla.client.config.typed_settings import ProducerSettings
    from ottla.client.consumer.coordinator.generation import ConsumerGroupMetadata
    from ottla.schemas import AsyncSchemaRegistryClient, Schema

LOG = logging.getLogger(__name__)
BATCHES_IN_A_ROW = 8
"""A task that sends without waiting yields to the sender after this many new batches."""


class Producer(ProducerFace):
    """Send records in asyncio. Settings, names and behaviour are those of `ottla.Producer`.

    Close it, or use it in an `async with` statement: queued records are sent by the event loop, and no longer after it
    has ended.
    """

    def __init__(self, config: Mapping[str, Any] | None = None, /, **keywords: Unpack[ProducerSettings]) -> None:
        super().__init__(ProducerCore(config, keywords, LoopSender))
        self._sender = cast(LoopSender, self._core.sender)
        self._accumulator = self._core.accumulator
        self._started_at_turn = 0
        self._closing: asyncio.Task[None] | None = None

    async def send(
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
        """Queue a record and return its future, which is awaited separately: `metadata = await (await producer.send(…))`.

        Suspends the task while the first metadata of a topic or buffer memory is missing, up to `max.block.ms`, and
        raises afterwards. `on_delivery(metadata, error)` runs in the event loop. After a cancelled call the record is
        either not queued, or it will be sent.
        """
        sender = self._sender
        if sender.loop is not get_running_loop():
            sender.attach()
        queued = self._intake.offer(topic, value, key, partition, timestamp, headers, on_delivery)
        if not isinstance(queued, RecordFuture):
            queued = await sender.await_steps(self._core.queue_record(queued))
        started = self._accumulator.flush_mark()
        if started - self._started_at_turn >= BATCHES_IN_A_ROW:
            self._started_at_turn = started
            await asyncio.sleep(0)
        return queued

    async def send_table(
        self,
        topic: str,
        table: Any,
        *,
        key: str | None = "key",
        value: str | None = "value",
        headers: str | None = None,
        timestamp: str | None = None,
        partition: str | None = None,
        value_format: str | None = None,
        key_format: str | None = None,
        registry: AsyncSchemaRegistryClient | Mapping[str, Any] | str | None = None,
        value_schema: str | Schema | None = None,
        key_schema: str | Schema | None = None,
    ) -> TableReceipt:
        """Queue the rows of a pyarrow Table or RecordBatch; the arguments name its columns.

        The rows are encoded without yielding to the event loop; before each batch the task may wait for memory. The
        receipt's `futures` can be awaited, and its `result(0)` is available after `flush`.

        `send_table(…, value_format="avro", registry=client)` writes the column of the value, such as one of structs, as
        registered Avro values: with `value_schema`, which is registered, or with the newest version of the topic's
        subject. The formats are `avro`, `json` and `protobuf`, of which `avro` makes no Python object for a row.
        """
        from ottla.client.producer.table import TableColumns

        core, columns = self._core, TableColumns(key, value, headers, timestamp, partition)
        if (key_format, value_format, registry, key_schema, value_schema) != (None, None, None, None, None):
            from ottla.schemas.registered_rows import checked_fields, encode_columns
            from ottla.schemas.registries import async_client

            given = {"key": (key, key_format, key_schema), "value": (value, value_format, value_schema)}
            fields = checked_fields(given)
            async with async_client(registry) as client:
                table = await client.run(encode_columns(table, topic, fields, client.calls))
        rows = core.queue_rows(topic, lambda count: core.rows.encode_table(topic, table, count, columns))
        return await self._sender.await_steps(rows)

    async def send_many(self, topic: str, values: Iterable[Any], *, keys: Iterable[Any] | None = None) -> TableReceipt:
        """Queue a record for each value, with the key at the same index, as `ottla.Producer` does; awaited like `send_table`."""
        core = self._core
        rows = core.queue_rows(topic, lambda count: core.rows.encode_lists(topic, values, keys, count))
        return await self._sender.await_steps(rows)

    async def partitions_for(self, topic: str) -> list[PartitionInfo]:
        """Return the partitions of a topic with their leaders and replicas, waiting up to `max.block.ms` for the metadata."""
        core = self._core
        info = await self._sender.await_steps(core.await_topic(topic, -1, core.clock.monotonic() + core.max_block))
        return list(info.partitions)

    async def client_instance_id(self, timeout: float | None = None) -> UUID:
        """Return the id that brokers assigned to this client for pushing metrics, as `ottla.Producer` does."""
        return await self._sender.await_steps(self._core.client_instance_id(timeout))

    async def flush(self, timeout: float | None = None) -> None:
        """Send all queued records, and wait until all have a result and their callbacks have run.

        Raises KafkaTimeoutError after `timeout` seconds, and UndeliveredError as `ottla.Producer.flush` does.
        """
        await self._sender.await_steps(self._core.flush(timeout))

    async def init_transactions(self, timeout: float | None = None) -> None:
        """Prepare for transactions, once before the first: acquire the `transactional.id` and fence the producer that used it before."""
        await self._sender.await_steps(self._core.init_transactions(timeout))

    async def send_offsets_to_transaction(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata | int],
        group_metadata: ConsumerGroupMetadata,
        timeout: float | None = None,
    ) -> None:
        """Add a consumer group's offsets to the transaction, to consume, process and produce exactly once.

        `group_metadata` is `consumer.group_metadata()`. An offset is the next one to read.
        """
        await self._sender.await_steps(self._core.send_offsets(offsets, group_metadata, timeout))

    async def commit_transaction(self, timeout: float | None = None) -> None:
        """Send what is queued, wait for the results, and commit the transaction.

        Raises TransactionAbortableError if one of its records was lost: then call `abort_transaction`. After a
        cancelled call, call it again to wait for the commit.
        """
        await self._sender.await_steps(self._core.commit_transaction(timeout))

    async def abort_transaction(self, timeout: float | None = None) -> None:
        """Abort the transaction. Records that were not sent yet fail with TransactionAbortedError."""
        await self._sender.await_steps(self._core.abort_transaction(timeout))

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Producer]:
        """Run an `async with` block in a transaction, which is committed at its end, and aborted if the block raises or is cancelled.

        A commit or abort that is cancelled itself, for example by `asyncio.timeout`, is finished before the next block
        starts.
        """
        await self._sender.await_steps(self._core.end_interrupted_block())
        self._core.begin_block()
        try:
            yield self
            await self.commit_transaction()
        except TransactionAbortableError:
            self._core.is_block_interrupted = True
            await self.abort_transaction()
            raise
        except BaseException:
            self._core.is_block_interrupted = True
            await self._abort_if_possible()
            raise

    async def close(self, timeout: float | None = None) -> None:
        """Send what is queued and close.

        Records undelivered after `timeout` seconds fail, and UndeliveredError is raised.

        Closing continues if the call is cancelled; another call waits for the same end.
        """
        span = maybe_timeout(timeout)
        if self._closing is None:
            self._closing = asyncio.ensure_future(self._finish(span))
        await asyncio.shield(self._closing)

    async def __aenter__(self) -> Producer:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self.close()
        except UndeliveredError as lost:
            if error is None:
                raise
            LOG.error("[%s] %s", self.client_id, lost)  # the block's exception is raised instead

    async def _finish(self, timeout: float | None) -> None:
        await self._sender.finish(FOREVER if timeout is None else timeout)
        self._finish_close()

    async def _abort_if_possible(self) -> None:
        """Abort after an exception. An error of the abort is only logged, because the original exception is raised."""
        try:
            await self._sender.await_steps(self._core.abort_block())
        except Exception as error:
            LOG.warning(
                "[%s] transaction not aborted; it will time out at the coordinator error=%s", self.client_id, error
            )


explain_names(Producer, PRODUCER)
