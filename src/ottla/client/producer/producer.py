"""The producer: what users call.

Runs on the users' threads: serialises, chooses the partition, appends. Sending is the `Sender`'s business.
"""

from __future__ import annotations

import logging
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from random import Random
from types import TracebackType
from typing import TYPE_CHECKING, Any, Unpack

from ottla.client.backoff import ExponentialBackoff
from ottla.client.bootstrap import bootstrap_nodes
from ottla.client.client_id import next_client_id
from ottla.client.described import described
from ottla.client.future import Future
from ottla.client.metadata import Metadata
from ottla.client.network_client import NetworkClient
from ottla.client.producer.buffer_pool import BufferPool
from ottla.client.producer.config import read_producer_settings
from ottla.client.producer.future import RecordFuture
from ottla.client.producer.interceptors import ProducerInterceptors
from ottla.client.producer.open_transaction import OpenTransaction
from ottla.client.producer.partitioner import StickyPartitioner, partitioner_for
from ottla.client.producer.produce_request_result import ProduceRequestResult
from ottla.client.producer.record_accumulator import CLOSED, RecordAccumulator
from ottla.client.producer.record_intake import RecordIntake
from ottla.client.producer.record_parts import offsets_to_send, serialized
from ottla.client.producer.sender import Sender
from ottla.client.producer.spare_buffers import SpareBuffers
from ottla.client.producer.table_receipt import TableReceipt
from ottla.client.producer.transaction_manager import TransactionManager
from ottla.client.producer.unheard import Refused
from ottla.clock import Clock, SystemClock
from ottla.errors import (
    ErrorCode,
    IllegalStateError,
    KafkaTimeoutError,
    TransactionAbortableError,
    UndeliveredError,
)
from ottla.model import Buffer, OffsetAndMetadata, PartitionInfo, TopicPartition
from ottla.records.builder import BatchBuilder
from ottla.records.compression import Codec
from ottla.records.encoder import Rows, encode_rows

if TYPE_CHECKING:
    from ottla.client.consumer.coordinator.generation import ConsumerGroupMetadata
    from ottla.client.producer.table import TableColumns
    from ottla.client.settings import ProducerSettings

LOG = logging.getLogger(__name__)
TABLE_BATCH_BYTES = 512 * 1024
HOPELESS = frozenset({ErrorCode.INVALID_TOPIC_EXCEPTION, ErrorCode.TOPIC_AUTHORIZATION_FAILED})
"""Answers about a topic that waiting does not change."""


class Producer(RecordIntake):
    """Sends records to topics; may be used by many threads.

    Settings come as Kafka's dotted names, as keywords, or both:
    `Producer({"bootstrap.servers": "127.0.0.1:9092"}, linger_ms=20)`. Close it, or use it in a `with` statement.
    """

    def __init__(self, config: Mapping[str, Any] | None = None, /, **keywords: Unpack[ProducerSettings]) -> None:
        self.config = read_producer_settings(config, keywords)
        self.client_id = self.config.client_id or next_client_id("producer")
        partitioner = partitioner_for(self.config.partitioner_class, ignore_keys=self.config.partitioner_ignore_keys)
        interceptors = (
            ProducerInterceptors(self.config.interceptor_classes) if self.config.interceptor_classes else None
        )
        self._codec = Codec[self.config.compression_type.upper()]
        self._level = self.config.compression_level
        self._table_bytes = max(self.config.batch_size, min(TABLE_BATCH_BYTES, self.config.max_record_bytes // 2))
        self._spare = SpareBuffers({self.config.batch_size, self._table_bytes})
        clock, random = SystemClock(), Random()
        metadata = self._make_metadata(random)
        self._transactions = self._make_transactions(random)
        accumulator = self._make_accumulator(clock, random)
        client = NetworkClient(
            self.config,
            metadata,
            client_id=self.client_id,
            max_in_flight=self.config.max_in_flight_requests_per_connection,
            clock=clock,
            random=random,
        )
        sender = self._make_sender(client, accumulator)
        super().__init__(
            self.config, clock, metadata, accumulator, sender, self._transactions, partitioner, interceptors
        )
        self._forgotten = weakref.finalize(self, sender.initiate_close)
        self._forgotten.atexit = False
        sender.start()

    def __repr__(self) -> str:
        return described(self, self._accumulator.closed)

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
        Batches are larger than `batch.size`, up to half a MiB. Waits for metadata and memory as `send` does.
        Interceptors do not see the rows; they are told the outcome of each batch, which is that of its first row.
        """
        from ottla.client.producer.table import TableColumns

        if self._transactional is not None:
            self._transactional.check_send()
        count = len(self._wait_on_metadata(topic, None).partitions)
        columns = TableColumns(key, value, headers, timestamp, partition)
        receipt = TableReceipt()
        for target, data, rows in self._table_batches(topic, table, count, columns):
            receipt.add(self._append_batch(topic, target, count, data, rows), rows)
        return receipt

    def send_many(self, topic: str, values: Iterable[Any], *, keys: Iterable[Any] | None = None) -> TableReceipt:
        """Queue a record of each value, with the key at the same place, and return one receipt for all of them.

        Several times as quick as to `send` them one by one; they travel as the rows of `send_table` do, in their order.
        """
        if self._transactional is not None:
            self._transactional.check_send()
        count = len(self._wait_on_metadata(topic, None).partitions)
        receipt = TableReceipt()
        for target, data, rows in self._plain_batches(topic, values, keys, count):
            receipt.add(self._append_batch(topic, target, count, data, rows), rows)
        return receipt

    def partitions_for(self, topic: str) -> list[PartitionInfo]:
        """The topic's partitions, their leaders and replicas; waits up to `max.block.ms` to learn them."""
        return list(self._wait_on_metadata(topic, None).partitions)

    def flush(self, timeout: float | None = None) -> None:
        """Send everything now and wait until it has its outcome and its callbacks have run.

        Raises KafkaTimeoutError after `timeout` seconds; an outcome that is an error is in its future, and told to its
        callback. UndeliveredError: records failed that came without a callback and whose futures nobody has kept.
        """
        self._not_from_callback("flush")
        self._accumulator.begin_flush()
        try:
            self._sender.wakeup()
            if not self._accumulator.await_flush(timeout):
                left = sum(batch.count for batch in self._accumulator.incomplete())
                raise KafkaTimeoutError(f"{left} records are still undelivered after flush(timeout={timeout:g})")
        finally:
            self._accumulator.end_flush()
        self._tell_unheard()

    def init_transactions(self, timeout: float | None = None) -> None:
        """Once, before the first transaction: takes over the `transactional.id`.

        Whoever had it is fenced, and the transaction it left open aborted. Waits up to `timeout` seconds (left out:
        `max.block.ms`), raises KafkaTimeoutError after that and may then be called again.
        """
        manager = self._needs_transactions("init_transactions")
        self._await("init_transactions", manager.init_transactions, timeout)

    def begin_transaction(self) -> None:
        """From here on what is sent belongs to a transaction. Asks nobody."""
        manager = self._needs_transactions("begin_transaction")
        with manager.lock:
            manager.begin_transaction()

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
        manager = self._needs_transactions("send_offsets_to_transaction")
        wanted = offsets_to_send(offsets, group_metadata)
        if wanted:
            self._await("send_offsets_to_transaction", lambda: manager.send_offsets(wanted, group_metadata), timeout)

    def commit_transaction(self, timeout: float | None = None) -> None:
        """Send what is queued, wait for it, and make the transaction count.

        Raises TransactionAbortableError when a record of it is lost: then `abort_transaction` is next. After
        KafkaTimeoutError (left out: after `max.block.ms`) it may have been committed; call it again to find out.
        """
        manager = self._needs_transactions("commit_transaction")
        self._await("commit_transaction", manager.commit_transaction, timeout)

    def abort_transaction(self, timeout: float | None = None) -> None:
        """Make the transaction count for nothing; what was not sent yet fails with TransactionAbortedError."""
        manager = self._needs_transactions("abort_transaction")
        self._await("abort_transaction", manager.abort_transaction, timeout)

    def hand_over_transaction(self) -> OpenTransaction:
        """Leave the transaction open for another producer to end, and be done: what is left here is `close`.

        Call `flush` first, and see that everything was written.
        """
        manager = self._needs_transactions("hand_over_transaction")
        with manager.lock:
            return manager.hand_over()

    def take_over_transaction(self, given: OpenTransaction) -> None:
        """Instead of `init_transactions`: go on in a transaction that was handed over, to commit or abort it.

        Nothing more is to be sent in it: how far its records are numbered is not known here.
        """
        manager = self._needs_transactions("take_over_transaction")
        if given.transactional_id != self.config.transactional_id:
            raise IllegalStateError(
                f"a transaction of transactional.id {given.transactional_id!r} cannot be ended by a producer of "
                f"{self.config.transactional_id!r}; give it the same"
            )
        with manager.lock:
            manager.take_over(given)

    @contextmanager
    def transaction(self) -> Iterator[Producer]:
        """A transaction as a `with` block: committed at its end, aborted when it raises, which goes on to be raised."""
        self.begin_transaction()
        try:
            yield self
            self.commit_transaction()
        except TransactionAbortableError:
            self.abort_transaction()  # which finds out if it is worse than that: another producer has taken over
            raise
        except BaseException:
            self._abort_if_possible()
            raise

    def close(self, timeout: float | None = None) -> None:
        """Send what is queued and end; what is undelivered after `timeout` seconds fails. May be called again.

        When all is closed, raises UndeliveredError as `flush` does.
        """
        if threading.current_thread() is self._sender.thread:
            self._sender.initiate_close()
            return
        self._sender.close(timeout)
        if self._forgotten.detach() is not None and self._interceptors is not None:
            self._interceptors.close()
        self._tell_unheard()

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

    def _make_sender(self, client: NetworkClient, accumulator: RecordAccumulator) -> Sender:
        return Sender(self.config, client, accumulator, self.client_id, self._transactions)

    def _table_batches(
        self, topic: str, table: Any, partitions: int, columns: TableColumns
    ) -> Iterator[tuple[int, Buffer, int]]:
        """The rows in encoded batches, each with its partition (negative: any) and how many rows it has."""
        from ottla.client.producer.table import grouped

        return self._encoded(grouped(table, columns, topic, partitions, self._partitioner, self._clock.wall_ms()))

    def _plain_batches(
        self, topic: str, values: Iterable[Any], keys: Iterable[Any] | None, partitions: int
    ) -> Iterator[tuple[int, Buffer, int]]:
        """The same of lists."""
        from ottla.client.producer.plain_rows import by_partition, plain

        config = self.config
        items = plain(values, config.value_serializer, partial(serialized, "value"))
        names = None if keys is None else plain(keys, config.key_serializer, partial(serialized, "key"))
        return self._encoded(by_partition(items, names, topic, partitions, self._partitioner, self._clock.wall_ms()))

    def _encoded(self, groups: Iterable[tuple[int, Rows]]) -> Iterator[tuple[int, Buffer, int]]:
        for partition, rows in groups:
            for batch in encode_rows(
                rows,
                max_bytes=self._table_bytes,
                codec=self._codec,
                level=self._level,
                sealed=self._transactions is None,
                room=self._spare.take,
            ):
                yield partition, batch.data, batch.last_row - batch.first_row + 1

    def _needs_transactions(self, call: str) -> TransactionManager:
        if self._transactional is None:
            raise IllegalStateError(f"{call}() needs a transactional.id; give the producer one")
        if self._accumulator.closed:
            raise IllegalStateError(CLOSED)
        self._not_from_callback(call)
        return self._transactional

    def _await(self, call: str, begin: Callable[[], Future[None]], timeout: float | None) -> None:
        """Begin something, have everything queued sent meanwhile, and wait for the end."""
        manager = self._needs_transactions(call)
        with manager.lock:
            result = begin()
        self._accumulator.begin_flush()
        try:
            self._sender.wakeup()
            error = result.exception(self._max_block if timeout is None else timeout)
        except KafkaTimeoutError:
            raise self._sender.late(call, self._max_block if timeout is None else timeout) from None
        finally:
            self._accumulator.end_flush()
        with manager.lock:
            manager.acknowledged(call)
        if error is not None:
            raise error

    def _abort_if_possible(self) -> None:
        """After an exception: it is that one that is to be raised, not another that comes of aborting."""
        assert self._transactional is not None
        if self._transactional.can_abort and not self._accumulator.closed:
            try:
                self.abort_transaction()
            except Exception as error:
                LOG.warning(
                    "[%s] the transaction is not aborted, the coordinator will do it: %s", self.client_id, error
                )

    def _make_metadata(self, random: Random) -> Metadata:
        config = self.config
        return Metadata(
            bootstrap_nodes(config.bootstrap_servers, config.client_dns_lookup),
            max_age_ms=config.metadata_max_age_ms,
            backoff=ExponentialBackoff(config.retry_backoff_ms, config.retry_backoff_max_ms, random),
            topic_idle_ms=config.metadata_max_idle_ms,
        )

    def _make_accumulator(self, clock: Clock, random: Random) -> RecordAccumulator:
        config = self.config
        return RecordAccumulator(
            batch_size=config.batch_size,
            linger_ms=config.linger_ms,
            delivery_timeout_ms=config.delivery_timeout_ms,
            retry_backoff=ExponentialBackoff(config.retry_backoff_ms, config.retry_backoff_max_ms, random),
            pool=BufferPool(config.buffer_memory, clock.monotonic),
            make_builder=partial(new_builder, self._codec, self._level, self._spare),
            make_sticky=lambda: StickyPartitioner(config.batch_size, random),
            monotonic=clock.monotonic,
            spare=self._spare,
            adaptive=config.partitioner_adaptive_partitioning_enable,
            numbering=self._transactions,
        )

    def _make_transactions(self, random: Random) -> TransactionManager | None:
        config = self.config
        if not config.enable_idempotence:
            return None
        return TransactionManager(
            name=self.client_id,
            backoff=ExponentialBackoff(config.retry_backoff_ms, config.retry_backoff_max_ms, random),
            transactional_id=config.transactional_id,
            timeout_ms=config.transaction_timeout_ms,
        )

    def _append_batch(
        self, topic: str, partition: int, partitions: int, data: Buffer, rows: int
    ) -> ProduceRequestResult:
        """Queue an encoded batch; one that is too large fails alone."""
        if len(data) > self._max_record_bytes:
            return self._refuse_rows(topic, partition, len(data), rows)
        if partition < 0:
            partition = self._accumulator.sticky_partition(topic, partitions, len(data))
        tp = TopicPartition(topic, partition)
        batch = self._accumulator.append_batch(tp, data, rows, self._max_block, self._sender.wakeup)
        if self._transactional is not None:
            self._transactional.send_to(tp)
        self._sender.wakeup()
        self._intercept(batch.result)
        return batch.result

    def _refuse_rows(self, topic: str, partition: int, size: int, rows: int) -> ProduceRequestResult:
        """What becomes of rows that are too large: those before them may be on their way, so their receipt tells."""
        result = ProduceRequestResult(topic, partition)
        error = self._too_large(topic, size)
        LOG.warning("[%s] %s: %d records failed: %s", self.client_id, topic, rows, error)
        result.complete(error=error)
        self._intercept(result)
        if self._transactional is not None:
            self._transactional.fail_transaction(error)
        else:
            self._sender.unheard.note(Refused(result), 0, rows)
        return result

    def _tell_unheard(self) -> None:
        unheard = self._sender.unheard.take()
        if unheard is not None:
            raise unheard from unheard.first

    def _intercept(self, result: ProduceRequestResult) -> None:
        """The interceptors hear of a batch of rows once, with what became of its first row."""
        if self._interceptors is not None:
            RecordFuture(result, 0, -1, -1, -1).on_delivery(partial(self._interceptors.acknowledged, None))

    def _not_from_callback(self, what: str) -> None:
        if threading.current_thread() is self._sender.thread:
            raise IllegalStateError(f"{what}() inside a delivery callback would wait for itself; call it elsewhere")


def new_builder(codec: Codec, level: int | None, spare: SpareBuffers, max_bytes: int) -> BatchBuilder:
    """What a batch is written with; knows nothing of the producer, which must be free to be forgotten."""
    return BatchBuilder(codec, level, max_bytes, spare.take(max_bytes))
