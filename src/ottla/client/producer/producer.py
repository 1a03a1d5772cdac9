"""The producer whose calls block: what users call, from as many threads as they like.

Appends on the caller's thread; sending is the `Sender`'s business, which has one of its own.
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
from ottla.client.producer.producer_face import ProducerFace, offered
from ottla.client.producer.sender import Sender
from ottla.client.producer.table_receipt import TableReceipt
from ottla.errors import TransactionAbortableError, UndeliveredError
from ottla.model import Header, OffsetAndMetadata, PartitionInfo, TopicPartition

if TYPE_CHECKING:
    from ottla.client.config.typed_settings import ProducerSettings
    from ottla.client.consumer.coordinator.generation import ConsumerGroupMetadata

LOG = logging.getLogger(__name__)


class Producer(ProducerFace):
    """Sends records to topics; may be used by many threads.

    Settings come as Kafka's dotted names, as keywords, or both:
    `Producer({"bootstrap.servers": "127.0.0.1:9092"}, linger_ms=20)`. Close it, or use it in a `with` statement.
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
        """Queue a record and return its future at once; `on_delivery(metadata, error)` runs on the sender's thread.

        Waits only for a topic's first metadata and for buffer memory, up to `max.block.ms`, and then raises. What is
        wrong with the record itself is raised at once, as RecordTooLargeError and SerializationError are, and the
        callback is not called. `timestamp` is in milliseconds; left out it is now.
        """
        try:
            queued = offered(self, topic, value, key, partition, timestamp, headers, on_delivery)
        except BaseException:  # of a signal handler, perhaps between the record and the sender's wakeup
            self._core.sender.wakeup()
            raise
        if isinstance(queued, RecordFuture):
            return queued
        return self._core.sender.run(self._core.queue(queued))

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
    ) -> TableReceipt:
        """Queue the rows of a pyarrow Table or RecordBatch; the arguments name its columns.

        Keys and values are any kind of string or binary, and a column `key` need not be there; the other columns count
        only when they are named. A row's partition is that of its column, else what single records would get.
        Batches are larger than `batch.size`, up to a megabyte. Waits for metadata and memory as `send` does.
        Interceptors do not see the rows; they are told the outcome of each batch, which is that of its first row.
        """
        from ottla.client.producer.table import TableColumns

        core, columns = self._core, TableColumns(key, value, headers, timestamp, partition)
        return core.sender.run(core.queue_rows(topic, lambda count: core.rows.of_table(topic, table, count, columns)))

    def send_many(self, topic: str, values: Iterable[Any], *, keys: Iterable[Any] | None = None) -> TableReceipt:
        """Queue a record of each value, with the key at the same place, and return one receipt for all of them.

        Several times as quick as to `send` them one by one; they travel as the rows of `send_table` do, in their order.
        """
        core = self._core
        return core.sender.run(core.queue_rows(topic, lambda count: core.rows.of_lists(topic, values, keys, count)))

    def partitions_for(self, topic: str) -> list[PartitionInfo]:
        """The topic's partitions, their leaders and replicas; waits up to `max.block.ms` to learn them."""
        core = self._core
        return list(core.sender.run(core.learn(topic, -1, core.clock.monotonic() + core.max_block)).partitions)

    def client_instance_id(self, timeout: float | None = None) -> UUID:
        """The id under which brokers know this client where it pushes metrics to them (KIP-714), the same until it is closed.

        Asked for within `timeout` seconds, left out: `max.block.ms`. IllegalStateError with `enable.metrics.push = false`,
        UnsupportedVersionError where the broker takes no metrics, KafkaTimeoutError where none answers.
        """
        return self._core.sender.run(self._core.client_instance_id(timeout))

    def flush(self, timeout: float | None = None) -> None:
        """Send everything now and wait until it has its outcome and its callbacks have run.

        Raises KafkaTimeoutError after `timeout` seconds; an outcome that is an error is in its future, and told to its
        callback. UndeliveredError: records failed that came without a callback and whose futures nobody has kept.
        """
        self._core.sender.run(self._core.flush(timeout))

    def init_transactions(self, timeout: float | None = None) -> None:
        """Once, before the first transaction: takes over the `transactional.id`.

        Whoever had it is fenced, and the transaction it left open aborted. Waits up to `timeout` seconds (left out:
        `max.block.ms`), raises KafkaTimeoutError after that and may then be called again.
        """
        self._core.sender.run(self._core.init_transactions(timeout))

    def send_offsets_to_transaction(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata | int],
        group_metadata: ConsumerGroupMetadata,
        timeout: float | None = None,
    ) -> None:
        """Commit the offsets of a consumer's group with the transaction: consume, process and produce exactly once.

        `group_metadata` is `consumer.group_metadata()`: with it a consumer that has lost its partitions is refused
        (KIP-447). An offset is the next one to read.
        """
        self._core.sender.run(self._core.send_offsets(offsets, group_metadata, timeout))

    def commit_transaction(self, timeout: float | None = None) -> None:
        """Send what is queued, wait for it, and make the transaction count.

        Raises TransactionAbortableError when a record of it is lost: then `abort_transaction` is next. After
        KafkaTimeoutError (left out: after `max.block.ms`) it may have been committed; call it again to find out.
        """
        self._core.sender.run(self._core.commit_transaction(timeout))

    def abort_transaction(self, timeout: float | None = None) -> None:
        """Make the transaction count for nothing; what was not sent yet fails with TransactionAbortedError."""
        self._core.sender.run(self._core.abort_transaction(timeout))

    @contextmanager
    def transaction(self) -> Iterator[Producer]:
        """Run a `with` block in a transaction: committed at its end, aborted if it raises.

        The commit or abort of an earlier block that a timeout, Ctrl-C or the like interrupted is finished first.
        """
        self._core.sender.run(self._core.end_interrupted_block())
        self._core.begin_block()
        try:
            yield self
            self.commit_transaction()
        except TransactionAbortableError:
            self._core.is_block_interrupted = True
            self.abort_transaction()  # which finds out if it is worse than that: another producer has taken over
            raise
        except BaseException:
            self._core.is_block_interrupted = True
            self._abort_if_possible()
            raise

    def close(self, timeout: float | None = None) -> None:
        """Send what is queued and end; what is undelivered after `timeout` seconds fails. May be called again.

        When all is closed, raises UndeliveredError as `flush` does.
        """
        span = maybe_timeout(timeout)
        sender = self._core.sender
        if sender.is_this_thread():
            sender.initiate_close()
            return
        sender.close(span)
        self._finished()

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
            LOG.error("[%s] %s", self.client_id, lost)  # it is the other error that is to be raised

    def _abort_if_possible(self) -> None:
        """After an exception: it is that one that is to be raised, not another that comes of aborting."""
        try:
            self._core.sender.run(self._core.abort_block())
        except Exception as error:
            LOG.warning("[%s] the transaction is not aborted, the coordinator will do it: %s", self.client_id, error)


explain_names(Producer, PRODUCER)
