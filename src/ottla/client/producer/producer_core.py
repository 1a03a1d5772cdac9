"""The core of a producer, blocking or asyncio.

Nothing here blocks. Calls that must wait, for metadata, memory or a result, are written as `Steps`. A blocking caller
runs them with the turns of the sender thread (`Turns`), an asyncio caller with those of its event loop (`ottla.aio`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any
from uuid import UUID

from ottla.client.interface.arguments import checked_timeout, checked_topic, maybe_timeout
from ottla.client.interface.identity import next_client_id
from ottla.client.metadata.metadata_snapshot import REFUSED_TOPIC, KnownTopic
from ottla.client.metrics.call_sensors import CallSensors
from ottla.client.metrics.client_metrics import ClientMetrics, MetricsBuilder
from ottla.client.metrics.descriptions import PRODUCER_CALLS
from ottla.client.metrics.network_sensors import write_counted
from ottla.client.metrics.statistics import Statistics
from ottla.client.network.network_metrics import write_client
from ottla.client.producer.buffer_pool import MemoryClaim
from ottla.client.producer.config import read_producer_settings
from ottla.client.producer.future import RecordFuture
from ottla.client.producer.open_transaction import OpenTransaction
from ottla.client.producer.parts import assemble_parts
from ottla.client.producer.produce_request_result import ProduceRequestResult
from ottla.client.producer.producer_batch import ProducerBatch
from ottla.client.producer.record_accumulator import CLOSED
from ottla.client.producer.record_intake import HeldRecord
from ottla.client.producer.record_parts import offsets_to_send
from ottla.client.producer.row_batches import RowBatch
from ottla.client.producer.sender import Sender
from ottla.client.producer.table_receipt import TableReceipt
from ottla.client.producer.transaction_manager import TransactionManager
from ottla.client.producer.transactions.call_outcome import CallOutcome
from ottla.client.producer.transactions.transaction_machine import SEND_OFFSETS, TransactionMachine
from ottla.client.producer.unobserved_failures import RejectedRows
from ottla.client.runtime.steps import Steps
from ottla.clock import SystemClock
from ottla.compiled import warn_if_slow
from ottla.errors import (
    BufferExhaustedError,
    IllegalStateError,
    KafkaTimeoutError,
    OttlaError,
    TransactionAbortableError,
    error_for,
    topic_asked,
)
from ottla.model import FOREVER, TopicPartition
from ottla.records import builder

LOG = logging.getLogger(__name__)
EXHAUSTED = "buffer-exhausted"


class ProducerCore:
    """The components of one producer."""

    def __init__(
        self, config: Mapping[str, Any] | None, keywords: Mapping[str, Any], make_sender: type[Sender]
    ) -> None:
        warn_if_slow(builder)
        self.config = read_producer_settings(config, keywords)
        self.client_id = self.config.client_id or next_client_id("producer")
        self.max_block = self.config.max_block_ms / 1000
        """`max.block.ms` in seconds."""
        self.clock = SystemClock()
        self.parts = parts = assemble_parts(self.config, self.client_id, self.clock, make_sender)
        self.metadata, self.accumulator, self.sender = parts.metadata, parts.accumulator, parts.sender
        self.intake, self.rows, self.interceptors = parts.intake, parts.rows, parts.interceptors
        self.transactions, self.events = parts.transactions, parts.events
        if self.config.on_statistics is not None:
            statistics = Statistics(
                self.config.statistics_interval_ms, self.config.on_statistics, self.clock.monotonic()
            )
            self.sender.report_statistics = partial(statistics.report_if_due, collect_metrics=self.take_metrics)
        if self.config.enable_metrics_push:
            named = {} if self.config.transactional_id is None else {"transactional_id": self.config.transactional_id}
            parts.client.telemetry.enable(lambda _: self.take_metrics(), lambda: named)
        self.calls = CallSensors(parts.client.sensors.registry, self.clock.monotonic, (*PRODUCER_CALLS, EXHAUSTED))
        self.on_finished: Callable[[], None] | None = None
        self.is_block_interrupted = False
        """True if an exception ended a `transaction()` block with a commit or abort that may be unfinished."""
        self.transactional = None if self.config.transactional_id is None else parts.transactions

    def take_metrics(self) -> ClientMetrics:
        """Return the current metrics. May be called from any thread."""
        now, pool, builder = self.clock.monotonic(), self.parts.pool, MetricsBuilder(self.client_id)
        write_client(builder, "producer", [self.parts.client], now)
        self.sender.sensors.write(builder, now)
        self.calls.write(builder.select_group("producer-metrics"), now, PRODUCER_CALLS)
        waited = self.calls.read("bufferpool-wait", now)
        builder.put("bufferpool-wait-ratio", waited.per_second(waited.recent_total))
        write_counted(builder, "buffer-exhausted", [self.calls.read(EXHAUSTED, now)])
        builder.select_group("producer-metrics").put("buffer-total-bytes", pool.total_bytes)
        builder.put("buffer-available-bytes", pool.available_bytes)
        builder.put("waiting-threads", pool.queued)
        return builder.build()

    def client_instance_id(self, timeout: float | None) -> Steps[UUID]:
        """Return the id under which metrics are pushed."""
        if self.accumulator.closed:
            raise IllegalStateError(CLOSED)
        span = self.max_block if timeout is None else checked_timeout(timeout)
        return self.parts.client.telemetry.client_instance_id(self.parts.client, span)

    @property
    def closed(self) -> bool:
        """True if no more records are accepted."""
        return self.accumulator.closed

    # Records

    def queue_record(self, held: HeldRecord) -> Steps[RecordFuture]:
        """Queue a record that has to wait, within `max.block.ms`."""
        deadline = self.clock.monotonic() + self.max_block
        while True:
            yield from self.await_topic(held.topic, held.partition, deadline)
            future = self.intake.offer_again(held)
            if future is not None:
                return future
            claim = self.accumulator.claim(held.key, held.value, held.headers)
            try:
                yield from self._await_memory(claim, deadline)
                future = self.intake.offer_again(held, claim)
            finally:
                self.parts.pool.withdraw(claim)
            if future is not None:
                return future  # otherwise the topic was deleted meanwhile

    def queue_rows(self, topic: str, batches_for: Callable[[int], Iterator[RowBatch]]) -> Steps[TableReceipt]:
        """Queue the batches of `batches_for(partition count)`, each when memory is available."""
        if self.accumulator.closed:
            raise IllegalStateError(CLOSED)
        if self.transactional is not None:
            self.transactional.check_send()
        info = yield from self.await_topic(topic, -1, self.clock.monotonic() + self.max_block)
        count = len(info.partitions)
        receipt = TableReceipt()
        for batch in batches_for(count):
            receipt.add((yield from self._queue_batch(topic, count, batch)), batch.rows)
            yield 0.0  # lets other tasks of an event loop run
        return receipt

    def await_topic(self, topic: str, partition: int, deadline: float) -> Steps[KnownTopic]:
        """Return the topic once it is known and has the partition (negative: any). Raises the error that prevents it."""
        checked_topic(topic)
        missing, tp = self.sender.missing_partitions, TopicPartition(topic, partition)
        while True:
            if self.accumulator.closed:
                raise IllegalStateError(CLOSED)
            now, version = self.clock.monotonic(), self.metadata.version
            self.metadata.track_topic(topic, now)
            cluster = self.metadata.cluster
            info = cluster.topics.get(topic)
            missing.check_partition(tp, cluster, now)
            if info is not None and partition < len(info.partitions):
                return info
            code = cluster.errors.get(topic, 0)
            if code in REFUSED_TOPIC:
                raise error_for(code, topic_asked(code, topic))
            if now >= deadline:
                missing.remove_partition(tp)
                raise self.sender.missing_topic_error(topic, partition, info)
            self.metadata.request_topic(topic)
            self.sender.wakeup_for_metadata()
            yield from self.calls.time_steps(
                "metadata-wait", self.wait_until(partial(self._has_newer_metadata, version), deadline)
            )

    def flush(self, timeout: float | None) -> Steps[None]:
        """Send all queued records, and wait for their results."""
        span = maybe_timeout(timeout)
        self.reject_in_callback("flush")
        mark = self.accumulator.flush_mark()
        steps = self._wait_without_linger(partial(self.accumulator.is_flushed, mark), span)
        if not (yield from self.calls.time_steps("flush", steps)):
            left = sum(batch.count for batch in self.accumulator.incomplete())
            raise KafkaTimeoutError(f"{left} records are still undelivered after flush(timeout={span:g})")
        self.raise_unobserved()

    # Transactions

    def begin_transaction(self) -> None:
        manager, start = self.require_transactions("begin_transaction"), self.clock.monotonic()
        with manager.lock:
            manager.machine.begin_transaction()
        manager.report_changes()
        self.calls.record("txn-begin", self.clock.monotonic() - start)

    def init_transactions(self, timeout: float | None) -> Steps[None]:
        """Acquire the `transactional.id`."""
        steps = self._run_transaction_call("init_transactions", lambda machine: machine.init_transactions(), timeout)
        return self.calls.time_steps("txn-init", steps)

    def send_offsets(self, offsets: Mapping[TopicPartition, Any], group: Any, timeout: float | None) -> Steps[None]:
        """Add a group's offsets to the transaction."""
        self.require_transactions(SEND_OFFSETS)
        checked = offsets_to_send(offsets, group)
        if checked:
            ids = self.parts.metadata.cluster.topic_ids({tp.topic for tp in checked})
            steps = self._run_transaction_call(
                SEND_OFFSETS, lambda machine: machine.send_offsets(checked, group, ids), timeout
            )
            yield from self.calls.time_steps("txn-send-offsets", steps)

    def commit_transaction(self, timeout: float | None) -> Steps[None]:
        """Send what is queued, and commit the transaction."""
        steps = self._run_transaction_call("commit_transaction", self._begin_commit, timeout)
        return self.calls.time_steps("txn-commit", steps)

    def abort_transaction(self, timeout: float | None) -> Steps[None]:
        """Abort the transaction."""
        steps = self._run_transaction_call("abort_transaction", lambda machine: machine.abort_transaction(), timeout)
        return self.calls.time_steps("txn-abort", steps)

    def begin_block(self) -> None:
        """Begin the transaction of a block. An exception of a signal handler here counts as an interrupted block."""
        try:
            self.begin_transaction()
        except BaseException as error:
            self.is_block_interrupted = not isinstance(error, OttlaError)
            raise

    def end_interrupted_block(self) -> Steps[None]:
        """Finish the commit or abort of an interrupted `transaction()` block before the next one starts.

        A commit that was sent may have succeeded, so it is not aborted: its result is awaited and logged.
        """
        if not self.is_block_interrupted:
            return
        call, can_abort = yield from self._find_unfinished_call()
        if call == "commit_transaction":
            try:
                yield from self.commit_transaction(None)
                LOG.info("[%s] transaction with interrupted commit is committed", self.client_id)
            except TransactionAbortableError as error:
                LOG.warning("[%s] transaction with interrupted commit is aborted error=%s", self.client_id, error)
                yield from self.abort_transaction(None)
        elif call == "abort_transaction" or can_abort:
            yield from self.abort_transaction(None)
        self.is_block_interrupted = False

    def hand_over_transaction(self) -> OpenTransaction:
        """Leave the transaction open for another producer to end."""
        manager = self.require_transactions("hand_over_transaction")
        with manager.lock:
            given = manager.machine.hand_over_transaction()
        manager.report_changes()
        return given

    def take_over_transaction(self, given: OpenTransaction) -> None:
        """Continue a transaction of another producer."""
        manager = self.require_transactions("take_over_transaction")
        if not isinstance(given, OpenTransaction):
            raise TypeError(f"given = {given!r}: must be the result of hand_over_transaction() of another producer")
        if given.transactional_id != self.config.transactional_id:
            raise IllegalStateError(
                f"a transaction of transactional.id {given.transactional_id!r} cannot be ended by a producer of "
                f"{self.config.transactional_id!r}; use the same id"
            )
        with manager.lock:
            manager.machine.take_over_transaction(given)
        manager.report_changes()

    def abort_block(self) -> Steps[None]:
        """Abort the transaction of a block after an exception, unless its commit was started, which may succeed."""
        if self.transactional is None or self.accumulator.closed:
            return
        call, can_abort = yield from self._find_unfinished_call()
        if can_abort and call != "commit_transaction":
            yield from self.abort_transaction(None)

    def _find_unfinished_call(self) -> Steps[tuple[str | None, bool]]:
        """Return the user's unfinished call, and whether the transaction can be aborted."""
        self.require_transactions("begin_transaction")
        decision = self.sender.submit_call(lambda machine: (machine.unfinished_call, machine.status.can_abort))
        yield from self.wait_until(decision.is_done, FOREVER)
        call, can_abort = decision.value
        return call, can_abort

    def _begin_commit(self, machine: TransactionMachine) -> CallOutcome:
        for batch in self.accumulator.incomplete():
            machine.add_partition(batch.tp)  # an exception in the user's thread may have prevented it before
        return machine.commit_transaction()

    def require_transactions(self, call: str) -> TransactionManager:
        """Return the transaction manager.

        Raises IllegalStateError for `call` without a transactional.id or after close.
        """
        if self.transactional is None:
            raise IllegalStateError(f"{call}() needs a transactional.id; set it")
        if self.accumulator.closed:
            raise IllegalStateError(CLOSED)
        self.reject_in_callback(call)
        return self.transactional

    # The end

    def run_close_callbacks(self) -> None:
        if self.on_finished is not None:
            self.on_finished()
        if self.interceptors is not None:
            self.interceptors.close()

    def raise_unobserved(self) -> None:
        """Raise UndeliveredError for failures without a callback or a future."""
        unobserved = self.sender.batches.unobserved.take_error()
        if unobserved is not None:
            raise unobserved from unobserved.first

    def reject_in_callback(self, call: str) -> None:
        """Raise IllegalStateError if the sender thread is the caller."""
        if self.sender.is_this_thread():
            raise IllegalStateError(f"{call}() inside a delivery callback would deadlock; call it from another thread")

    # Within

    def wait_until(self, done: Callable[[], bool], deadline: float) -> Steps[bool]:
        """Wait until `done`. Return False if `deadline` passes first."""
        while not done():
            left = deadline - self.clock.monotonic()
            if left <= 0:
                return False
            yield left
        return True

    def _run_transaction_call(
        self, call: str, begin: Callable[[TransactionMachine], CallOutcome], timeout: float | None
    ) -> Steps[None]:
        """Run a step of a transaction: all queued records are sent meanwhile. Wait for its result."""
        manager = self.require_transactions(call)
        span = self.max_block if timeout is None else checked_timeout(timeout)
        decision = self.sender.submit_call(begin)
        if not (yield from self._wait_without_linger(lambda: decision.is_done() or self._is_unreachable(), span)):
            raise self.sender.timeout_error(call, span)
        if decision.error is None:
            with manager.lock:
                manager.machine.acknowledge_call(call)
        decision.raise_error()

    def _is_unreachable(self) -> bool:
        """Return False. Raises the error that prevents the first response of a broker, although connecting is retried."""
        return self.metadata.version == 0 and self.metadata.is_newer_than(0)

    def _wait_without_linger(self, done: Callable[[], bool], timeout: float | None) -> Steps[bool]:
        """Wait while all queued records are due at once, without lingering."""
        deadline = FOREVER if timeout is None else self.clock.monotonic() + timeout
        self.accumulator.begin_flush()
        try:
            self.sender.wakeup()
            return (yield from self.wait_until(done, deadline))
        finally:
            self.accumulator.end_flush()

    def _has_newer_metadata(self, version: int) -> bool:
        return self.metadata.is_newer_than(version) or self.accumulator.closed

    def _await_memory(self, claim: MemoryClaim, deadline: float) -> Steps[None]:
        """Wait in order for memory. All queued records are due meanwhile."""
        pool = self.parts.pool
        self.sender.wakeup()
        until_granted = self.wait_until(lambda: claim.granted or pool.closed, deadline)
        if not (yield from self.calls.time_steps("bufferpool-wait", until_granted)):
            self.calls.record(EXHAUSTED, 0.0)
            raise BufferExhaustedError(
                f"no buffer memory for {claim.size} bytes within max.block.ms = {self.config.max_block_ms}: {pool.total_bytes} "
                f"bytes (buffer.memory) are waiting to be sent; raise one of the two, or send more slowly"
            )
        if pool.closed:
            raise BufferExhaustedError(f"the producer was closed while {claim.size} bytes waited for buffer memory")

    def _queue_batch(self, topic: str, partitions: int, batch: RowBatch) -> Steps[ProduceRequestResult]:
        """Queue an encoded batch. One that is too large fails alone."""
        size = len(batch.data)
        if size > self.config.max_record_bytes:
            return self._reject_rows(topic, batch)
        partition = batch.partition
        if partition < 0:
            partition = self.accumulator.sticky_partition(topic, partitions, size)
        tp = TopicPartition(topic, partition)
        queued = self.accumulator.append_batch(tp, batch.data, batch.rows)
        if queued is None:
            queued = yield from self._queue_when_granted(tp, batch)
        if self.transactional is not None and self.transactional.add_partition(tp):
            self.sender.wakeup()
        self._intercept(queued.result)
        return queued.result

    def _queue_when_granted(self, tp: TopicPartition, batch: RowBatch) -> Steps[ProducerBatch]:
        claim = self.parts.pool.claim(len(batch.data))
        try:
            yield from self._await_memory(claim, self.clock.monotonic() + self.max_block)
            queued = self.accumulator.append_batch(tp, batch.data, batch.rows, claim)
            assert queued is not None, "its memory was granted"
            return queued
        finally:
            self.parts.pool.withdraw(claim)

    def _reject_rows(self, topic: str, batch: RowBatch) -> ProduceRequestResult:
        """Fail rows that are too large. Earlier rows may be sent already, so the error is reported in the receipt."""
        result = ProduceRequestResult(topic, batch.partition)
        error = self.intake.too_large_error(topic, len(batch.data))
        LOG.warning("[%s] delivery failed topic=%s records=%d error=%s", self.client_id, topic, batch.rows, error)
        result.complete(error=error)
        self._intercept(result)
        if self.transactional is not None:
            self.transactional.fail_transaction(error)
        else:
            self.sender.batches.unobserved.record_failure(RejectedRows(result), 0, batch.rows)
        return result

    def _intercept(self, result: ProduceRequestResult) -> None:
        """Call the interceptors once for a batch of rows, with the result of its first row."""
        if self.interceptors is not None:
            RecordFuture(result, 0, -1, -1, -1).on_delivery(partial(self.interceptors.acknowledged, None))
