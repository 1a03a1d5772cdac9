"""The public blocking producer, for any number of threads.

Records are appended in the caller's thread, and sent by the `Sender` in its own thread.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Unpack
from uuid import UUID

from ottla.client.interface.arguments import maybe_timeout
from ottla.client.interface.method_names import PRODUCER, explain_names
from ottla.client.producer.future import RecordFuture
from ottla.client.producer.produce_request_result import OnDelivery
from ottla.client.producer.producer_core import ProducerCore
from ottla.client.producer.producer_face import ProducerFace, call_offer
from ottla.client.producer.sender import Sender
from ottla.client.producer.table_receipt import TableReceipt
from ottla.errors import TransactionAbortableError, UndeliveredError
from ottla.model import Header, OffsetAndMetadata, PartitionInfo, TopicPartition

if TYPE_CHECKING:
    from ottla.client.config.typed_settings import ProducerSettings
    from ottla.client.consumer.coordinator.generation import ConsumerGroupMetadata
    from ottla.schemas import Schema, SchemaRegistryClient

LOG = logging.getLogger(__name__)


class Producer(ProducerFace):
    """Send records to topics. May be used by many threads.

    Settings are given with Kafka's dotted names, as keywords, or both: `Producer({"bootstrap.servers":
    "127.0.0.1:9092"}, linger_ms=20)`. Close it, or use it in a `with` statement.
    """

    def __init__(self, config: Mapping[str, Any] | None = None, /, **keywords: Unpack[ProducerSettings]) -> None:
        super().__init__(ProducerCore(config, keywords, Sender))

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
        """Queue a record and return its future at once. `on_delivery(metadata, error)` runs on the sender thread.

        Waits only for the first metadata of a topic and for buffer memory, up to `max.block.ms`, and raises afterwards.
        Errors of the record itself, such as RecordTooLargeError and SerializationError, are raised at once without
        calling the callback. `timestamp` is in milliseconds since 1970; the default is the current time.
        """
        try:
            queued = call_offer(self, topic, value, key, partition, timestamp, headers, on_delivery)
        except BaseException:  # of a signal handler, perhaps between appending the record and waking the sender
            self._core.sender.wakeup()
            raise
        if isinstance(queued, RecordFuture):
            return queued
        return self._core.sender.run(self._core.queue_record(queued))

    def send_table(
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
        registry: SchemaRegistryClient | Mapping[str, Any] | str | None = None,
        value_schema: str | Schema | None = None,
        key_schema: str | Schema | None = None,
    ) -> TableReceipt:
        """Queue the rows of a pyarrow Table or RecordBatch; the arguments name its columns.

        Keys and values may have any string or binary type; a column `key` is optional, and the other columns are used
        only if they are named. The partition of a row is that of its column, else the one that a single record would
        get. Batches are larger than `batch.size`, up to a megabyte. Waits for metadata and memory as `send` does.
        Interceptors do not receive the rows; `on_acknowledgement` is called once per batch, with the result of its
        first row.

        `send_table(…, value_format="avro", registry=client)` writes the column of the value, such as one of structs, as
        registered Avro values: with `value_schema`, which is registered, or with the newest version of the topic's
        subject. The formats are `avro`, `json` and `protobuf`, of which `avro` makes no Python object for a row.
        """
        from ottla.client.producer.table import TableColumns

        core, columns = self._core, TableColumns(key, value, headers, timestamp, partition)
        if (key_format, value_format, registry, key_schema, value_schema) != (None, None, None, None, None):
            from ottla.schemas.registered_rows import checked_fields, encode_columns
            from ottla.schemas.registries import blocking_client

            given = {"key": (key, key_format, key_schema), "value": (value, value_format, value_schema)}
            fields = checked_fields(given)
            with blocking_client(registry) as client:
                table = client.run(encode_columns(table, topic, fields, client.calls))
        return core.sender.run(
            core.queue_rows(topic, lambda count: core.rows.encode_table(topic, table, count, columns))
        )

    def send_many(self, topic: str, values: Iterable[Any], *, keys: Iterable[Any] | None = None) -> TableReceipt:
        """Queue a record for each value, with the key at the same index, and return one receipt for all of them.

        Several times faster than single calls of `send`; the records are sent in order, like the rows of `send_table`.
        """
        core = self._core
        return core.sender.run(core.queue_rows(topic, lambda count: core.rows.encode_lists(topic, values, keys, count)))

    def partitions_for(self, topic: str) -> list[PartitionInfo]:
        """Return the partitions of a topic with their leaders and replicas, waiting up to `max.block.ms` for the metadata."""
        core = self._core
        return list(core.sender.run(core.await_topic(topic, -1, core.clock.monotonic() + core.max_block)).partitions)

    def client_instance_id(self, timeout: float | None = None) -> UUID:
        """Return the id that brokers assigned to this client for pushing metrics (KIP-714); it does not change until the client is closed.

        The id is requested within `timeout` seconds, by default `max.block.ms`. Raises IllegalStateError with
        `enable.metrics.push = false`, UnsupportedVersionError if the broker does not accept metrics, KafkaTimeoutError
        if no broker responds.
        """
        return self._core.sender.run(self._core.client_instance_id(timeout))

    def flush(self, timeout: float | None = None) -> None:
        """Send all queued records, and wait until all have a result and their callbacks have run.

        Raises KafkaTimeoutError after `timeout` seconds. The error of a record is in its future and passed to its
        callback. Raises UndeliveredError if records failed that have no callback and no existing future.
        """
        self._core.sender.run(self._core.flush(timeout))

    def init_transactions(self, timeout: float | None = None) -> None:
        """Prepare for transactions, once before the first: acquire the `transactional.id`.

        The producer that used it before is fenced, and its open transaction aborted. Waits up to `timeout` seconds (by
        default `max.block.ms`), raises KafkaTimeoutError after that, and may then be called again.
        """
        self._core.sender.run(self._core.init_transactions(timeout))

    def send_offsets_to_transaction(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata | int],
        group_metadata: ConsumerGroupMetadata,
        timeout: float | None = None,
    ) -> None:
        """Add a consumer group's offsets to the transaction, to consume, process and produce exactly once.

        `group_metadata` is `consumer.group_metadata()`; with it the offsets of a consumer that has lost its partitions
        are rejected (KIP-447). An offset is the next one to read.
        """
        self._core.sender.run(self._core.send_offsets(offsets, group_metadata, timeout))

    def commit_transaction(self, timeout: float | None = None) -> None:
        """Send what is queued, wait for the results, and commit the transaction.

        Raises TransactionAbortableError if one of its records was lost: then call `abort_transaction`. After
        KafkaTimeoutError (by default after `max.block.ms`) the commit may have succeeded; call it again to find out.
        """
        self._core.sender.run(self._core.commit_transaction(timeout))

    def abort_transaction(self, timeout: float | None = None) -> None:
        """Abort the transaction. Records that were not sent yet fail with TransactionAbortedError."""
        self._core.sender.run(self._core.abort_transaction(timeout))

    @contextmanager
    def transaction(self) -> Iterator[Producer]:
        """Run a `with` block in a transaction, which is committed at its end, and aborted if the block raises.

        An unfinished commit or abort of an earlier block, interrupted by a timeout or Ctrl-C for example, is finished
        first.
        """
        self._core.sender.run(self._core.end_interrupted_block())
        self._core.begin_block()
        try:
            yield self
            self.commit_transaction()
        except TransactionAbortableError:
            self._core.is_block_interrupted = True
            self.abort_transaction()  # raises if another producer has fenced this one
            raise
        except BaseException:
            self._core.is_block_interrupted = True
            self._abort_if_possible()
            raise

    def close(self, timeout: float | None = None) -> None:
        """Send what is queued and close. Records undelivered after `timeout` seconds fail. May be called again.

        After everything is closed, raises UndeliveredError as `flush` does.
        """
        span = maybe_timeout(timeout)
        sender = self._core.sender
        if sender.is_this_thread():
            sender.initiate_close()
            return
        sender.close(span)
        self._finish_close()

    def __enter__(self) -> Producer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.close()
        except UndeliveredError as lost:
            if error is None:
                raise
            LOG.error("[%s] %s", self.client_id, lost)  # the block's exception is raised instead

    def _abort_if_possible(self) -> None:
        """Abort after an exception. An error of the abort is only logged, because the original exception is raised."""
        try:
            self._core.sender.run(self._core.abort_block())
        except Exception as error:
            LOG.warning(
                "[%s] transaction not aborted; it will time out at the coordinator error=%s", self.client_id, error
            )


explain_names(Producer, PRODUCER)
