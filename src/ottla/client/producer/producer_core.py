"""What is inside a producer, whether its caller blocks or awaits.

Nothing here waits. What has to, for a topic, for memory, for an outcome, is `Steps`: a caller that blocks runs them
by the turns of the sender's thread (`Turns`), one in asyncio by those of its event loop (`ottla.aio`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any
from uuid import UUID

from ottla.client.interface.arguments import checked_timeout, checked_topic, maybe_timeout
from ottla.client.interface.identity import next_client_id
from ottla.client.metadata.cluster import REFUSED_TOPIC, TopicInfo
from ottla.client.metrics.call_sensors import CallSensors
from ottla.client.metrics.client_metrics import ClientMetrics, Sheet
from ottla.client.metrics.descriptions import PRODUCER_CALLS
from ottla.client.metrics.network_sensors import write_counted
from ottla.client.metrics.statistics import Statistics
from ottla.client.network.network_metrics import write_client
from ottla.client.producer.buffer_pool import Claim
from ottla.client.producer.config import read_producer_settings
from ottla.client.producer.future import RecordFuture
from ottla.client.producer.open_transaction import OpenTransaction
from ottla.client.producer.parts import assemble
from ottla.client.producer.produce_request_result import ProduceRequestResult
from ottla.client.producer.producer_batch import ProducerBatch
from ottla.client.producer.record_accumulator import CLOSED
from ottla.client.producer.record_intake import HeldRecord
from ottla.client.producer.record_parts import offsets_to_send
from ottla.client.producer.row_batches import RowBatch
from ottla.client.producer.sender import Sender
from ottla.client.producer.table_receipt import TableReceipt
from ottla.client.producer.transaction_manager import TransactionManager
from ottla.client.producer.transactions.outcome import Outcome
from ottla.client.producer.transactions.transaction_machine import SEND_OFFSETS, TransactionMachine
from ottla.client.producer.unheard import Refused
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
    """The parts of one producer."""

    def __init__(
        self, config: Mapping[str, Any] | None, keywords: Mapping[str, Any], make_sender: type[Sender]
    ) -> None:
        warn_if_slow(builder)
        self.config = read_producer_settings(config, keywords)
        self.client_id = self.config.client_id or next_client_id("producer")
        self.max_block = self.config.max_block_ms / 1000
        """Seconds."""
        self.clock = SystemClock()
        self.parts = parts = assemble(self.config, self.client_id, self.clock, make_sender)
        self.metadata, self.accumulator, self.sender = parts.metadata, parts.accumulator, parts.sender
        self.intake, self.rows, self.interceptors = parts.intake, parts.rows, parts.interceptors
        self.transactions, self.events = parts.transactions, parts.events
        if self.config.on_statistics is not None:
            statistics = Statistics(
                self.config.statistics_interval_ms, self.config.on_statistics, self.clock.monotonic()
            )
            self.sender.tell_statistics = partial(statistics.look, take=self.take_metrics)
        if self.config.enable_metrics_push:
            named = {} if self.config.transactional_id is None else {"transactional_id": self.config.transactional_id}
            parts.client.telemetry.begin(lambda _: self.take_metrics(), lambda: named)
        self.calls = CallSensors(parts.client.sensors.registry, self.clock.monotonic, (*PRODUCER_CALLS, EXHAUSTED))
        self.on_finished: Callable[[], None] | None = None
        self.is_block_interrupted = False
        """True if an exception left a `transaction()` block, whose commit or abort may be unfinished."""
        self.transactional = None if self.config.transactional_id is None else parts.transactions

    def take_metrics(self) -> ClientMetrics:
        """The numbers as they are; from any thread."""
        now, pool, sheet = self.clock.monotonic(), self.parts.pool, Sheet(self.client_id)
        write_client(sheet, "producer", [self.parts.client], now)
        self.sender.sensors.write(sheet, now)
        self.calls.write(sheet.of("producer-metrics"), now, PRODUCER_CALLS)
        waited = self.calls.read("bufferpool-wait", now)
        sheet.put("bufferpool-wait-ratio", waited.per_second(waited.amount))
        write_counted(sheet, "buffer-exhausted", [self.calls.read(EXHAUSTED, now)])
        sheet.of("producer-metrics").put("buffer-total-bytes", pool.total_bytes)
        sheet.put("buffer-available-bytes", pool.available_bytes)
        sheet.put("waiting-threads", pool.queued)
        return sheet.whole()

    def client_instance_id(self, timeout: float | None) -> Steps[UUID]:
        """The id under which the numbers are pushed."""
        if self.accumulator.closed:
            raise IllegalStateError(CLOSED)
        span = self.max_block if timeout is None else checked_timeout(timeout)
        return self.parts.client.telemetry.client_instance_id(self.parts.client, span)

    @property
    def closed(self) -> bool:
        """Whether nothing more is taken."""
        return self.accumulator.closed

    # Records

    def queue(self, held: HeldRecord) -> Steps[RecordFuture]:
        """Queue a record that has to wait, within `max.block.ms`."""
        deadline = self.clock.monotonic() + self.max_block
        while True:
            yield from self.learn(held.topic, held.partition, deadline)
            future = self.intake.offer_again(held)
            if future is not None:
                return future
            claim = self.accumulator.claim(held.key, held.value, held.headers)
            try:
                yield from self._granted(claim, deadline)
                future = self.intake.offer_again(held, claim)
            finally:
                self.parts.pool.withdraw(claim)
            if future is not None:
                return future  # else the topic has gone meanwhile

    def queue_rows(self, topic: str, batches_for: Callable[[int], Iterator[RowBatch]]) -> Steps[TableReceipt]:
        """Queue what `batches_for` the topic's number of partitions gives, each batch when there is memory for it."""
        if self.accumulator.closed:
            raise IllegalStateError(CLOSED)
        if self.transactional is not None:
            self.transactional.check_send()
        info = yield from self.learn(topic, -1, self.clock.monotonic() + self.max_block)
        count = len(info.partitions)
        receipt = TableReceipt()
        for batch in batches_for(count):
            receipt.add((yield from self._queue_batch(topic, count, batch)), batch.rows)
            yield 0.0  # one in asyncio lets others in
        return receipt

    def learn(self, topic: str, partition: int, deadline: float) -> Steps[TopicInfo]:
        """The topic, once it is known and has the partition (negative: any); raises what keeps it from that."""
        checked_topic(topic)
        missing, tp = self.sender.missing_partitions, TopicPartition(topic, partition)
        while True:
            if self.accumulator.closed:
                raise IllegalStateError(CLOSED)
            now, version = self.clock.monotonic(), self.metadata.version
            self.metadata.want(topic, now)
            cluster = self.metadata.cluster
            info = cluster.topics.get(topic)
            missing.note(tp, cluster, now)
            if info is not None and partition < len(info.partitions):
                return info
            code = cluster.errors.get(topic, 0)
            if code in REFUSED_TOPIC:
                raise error_for(code, topic_asked(code, topic))
            if now >= deadline:
                missing.forget(tp)
                raise self.sender.missing(topic, partition, info)
            self.metadata.request_update()
            self.sender.wakeup_for_metadata()
            yield from self.calls.timed("metadata-wait", self.until(partial(self._has_news, version), deadline))

    def flush(self, timeout: float | None) -> Steps[None]:
        """Have everything queued sent, and wait until it has its outcome."""
        span = maybe_timeout(timeout)
        self.refuse_in_callback("flush")
        mark = self.accumulator.flush_mark()
        pressing = self._pressing(partial(self.accumulator.is_flushed, mark), span)
        if not (yield from self.calls.timed("flush", pressing)):
            left = sum(batch.count for batch in self.accumulator.incomplete())
            raise KafkaTimeoutError(f"{left} records are still undelivered after flush(timeout={span:g})")
        self.tell_unheard()

    # Transactions

    def begin_transaction(self) -> None:
        manager, began = self.needs_transactions("begin_transaction"), self.clock.monotonic()
        with manager.lock:
            manager.machine.begin_transaction()
        manager.report()
        self.calls.record("txn-begin", self.clock.monotonic() - began)

    def init_transactions(self, timeout: float | None) -> Steps[None]:
        """Take the `transactional.id` over."""
        steps = self._step("init_transactions", lambda machine: machine.init_transactions(), timeout)
        return self.calls.timed("txn-init", steps)

    def send_offsets(self, offsets: Mapping[TopicPartition, Any], group: Any, timeout: float | None) -> Steps[None]:
        """Commit a group's offsets with the transaction."""
        self.needs_transactions(SEND_OFFSETS)
        checked = offsets_to_send(offsets, group)
        if checked:
            steps = self._step(SEND_OFFSETS, lambda machine: machine.send_offsets(checked, group), timeout)
            yield from self.calls.timed("txn-send-offsets", steps)

    def commit_transaction(self, timeout: float | None) -> Steps[None]:
        """Send what is queued, and make the transaction count."""
        steps = self._step("commit_transaction", self._begin_commit, timeout)
        return self.calls.timed("txn-commit", steps)

    def abort_transaction(self, timeout: float | None) -> Steps[None]:
        """Make it count for nothing."""
        steps = self._step("abort_transaction", lambda machine: machine.abort_transaction(), timeout)
        return self.calls.timed("txn-abort", steps)

    def begin_block(self) -> None:
        """Begin the transaction of a block; what a signal handler raises in here counts as an interrupted block."""
        try:
            self.begin_transaction()
        except BaseException as error:
            self.is_block_interrupted = not isinstance(error, OttlaError)
            raise

    def end_interrupted_block(self) -> Steps[None]:
        """Finish the commit or abort of a `transaction()` block that an exception has left, before the next one begins.

        A commit that was sent may have counted, so it is not aborted: it is waited for, and its outcome is logged.
        """
        if not self.is_block_interrupted:
            return
        call, can_abort = yield from self._find_unfinished()
        if call == "commit_transaction":
            try:
                yield from self.commit_transaction(None)
                LOG.info("[%s] the transaction whose commit was interrupted is committed", self.client_id)
            except TransactionAbortableError as error:
                LOG.warning("[%s] the transaction whose commit was interrupted is aborted: %s", self.client_id, error)
                yield from self.abort_transaction(None)
        elif call == "abort_transaction" or can_abort:
            yield from self.abort_transaction(None)
        self.is_block_interrupted = False

    def hand_over(self) -> OpenTransaction:
        """Leave the transaction open for another producer to end."""
        manager = self.needs_transactions("hand_over_transaction")
        with manager.lock:
            given = manager.machine.hand_over()
        manager.report()
        return given

    def take_over(self, given: OpenTransaction) -> None:
        """Go on in a transaction that was handed over."""
        manager = self.needs_transactions("take_over_transaction")
        if not isinstance(given, OpenTransaction):
            raise TypeError(f"given = {given!r}: must be what hand_over_transaction() of another producer has returned")
        if given.transactional_id != self.config.transactional_id:
            raise IllegalStateError(
                f"a transaction of transactional.id {given.transactional_id!r} cannot be ended by a producer of "
                f"{self.config.transactional_id!r}; give it the same"
            )
        with manager.lock:
            manager.machine.take_over(given)
        manager.report()

    def abort_block(self) -> Steps[None]:
        """Abort the transaction of a block that an exception left, unless its commit was begun, which may count."""
        if self.transactional is None or self.accumulator.closed:
            return
        call, can_abort = yield from self._find_unfinished()
        if can_abort and call != "commit_transaction":
            yield from self.abort_transaction(None)

    def _find_unfinished(self) -> Steps[tuple[str | None, bool]]:
        """Return the user's call that has not finished, and whether there is a transaction that can be aborted."""
        self.needs_transactions("begin_transaction")
        decision = self.sender.decide(lambda machine: (machine.unfinished_call, machine.status.can_abort))
        yield from self.until(decision.is_settled, FOREVER)
        call, can_abort = decision.value
        return call, can_abort

    def _begin_commit(self, machine: TransactionMachine) -> Outcome:
        for batch in self.accumulator.incomplete():
            machine.send_to(batch.tp)  # an exception in the user's thread may have come before it
        return machine.commit_transaction()

    def needs_transactions(self, call: str) -> TransactionManager:
        """Who knows of transactions; an error for `call` where there can be none, or none any more."""
        if self.transactional is None:
            raise IllegalStateError(f"{call}() needs a transactional.id; give the producer one")
        if self.accumulator.closed:
            raise IllegalStateError(CLOSED)
        self.refuse_in_callback(call)
        return self.transactional

    # The end

    def finished(self) -> None:
        if self.on_finished is not None:
            self.on_finished()
        if self.interceptors is not None:
            self.interceptors.close()

    def tell_unheard(self) -> None:
        """Raise UndeliveredError for what failed without anybody hearing of it."""
        unheard = self.sender.batches.unheard.take()
        if unheard is not None:
            raise unheard from unheard.first

    def refuse_in_callback(self, call: str) -> None:
        """IllegalStateError where the sender itself is the caller."""
        if self.sender.is_this_thread():
            raise IllegalStateError(f"{call}() inside a delivery callback would wait for itself; call it elsewhere")

    # Within

    def until(self, done: Callable[[], bool], deadline: float) -> Steps[bool]:
        """Wait until it is so; False when `deadline` comes first."""
        while not done():
            left = deadline - self.clock.monotonic()
            if left <= 0:
                return False
            yield left
        return True

    def _step(self, call: str, begin: Callable[[TransactionMachine], Outcome], timeout: float | None) -> Steps[None]:
        """Begin a step of a transaction, have everything queued sent meanwhile, and wait for the end."""
        manager = self.needs_transactions(call)
        span = self.max_block if timeout is None else checked_timeout(timeout)
        decision = self.sender.decide(begin)
        if not (yield from self._pressing(lambda: decision.is_settled() or self._is_refused(), span)):
            raise self.sender.late(call, span)
        if decision.error is None:
            with manager.lock:
                manager.machine.acknowledged(call)
        decision.raise_error()

    def _is_refused(self) -> bool:
        """Never; raises what keeps us from the first answer of any broker, which goes on being tried."""
        return self.metadata.version == 0 and self.metadata.has_news(0)

    def _pressing(self, done: Callable[[], bool], timeout: float | None) -> Steps[bool]:
        """Wait for something that all that is queued must be sent for: nothing lingers meanwhile."""
        deadline = FOREVER if timeout is None else self.clock.monotonic() + timeout
        self.accumulator.begin_flush()
        try:
            self.sender.wakeup()
            return (yield from self.until(done, deadline))
        finally:
            self.accumulator.end_flush()

    def _has_news(self, version: int) -> bool:
        return self.metadata.has_news(version) or self.accumulator.closed

    def _granted(self, claim: Claim, deadline: float) -> Steps[None]:
        """Wait in line for memory; everything queued is due meanwhile."""
        pool = self.parts.pool
        self.sender.wakeup()
        until_granted = self.until(lambda: claim.granted or pool.closed, deadline)
        if not (yield from self.calls.timed("bufferpool-wait", until_granted)):
            self.calls.record(EXHAUSTED, 0.0)
            raise BufferExhaustedError(
                f"no room for {claim.size} bytes within max.block.ms = {self.config.max_block_ms}: {pool.total_bytes} "
                f"bytes (buffer.memory) are waiting to be sent; raise one of the two, or send more slowly"
            )
        if pool.closed:
            raise BufferExhaustedError(f"the producer was closed while {claim.size} bytes waited for buffer memory")

    def _queue_batch(self, topic: str, partitions: int, batch: RowBatch) -> Steps[ProduceRequestResult]:
        """Queue an encoded batch; one that is too large fails alone."""
        size = len(batch.data)
        if size > self.config.max_record_bytes:
            return self._refuse_rows(topic, batch)
        partition = batch.partition
        if partition < 0:
            partition = self.accumulator.sticky_partition(topic, partitions, size)
        tp = TopicPartition(topic, partition)
        queued = self.accumulator.append_batch(tp, batch.data, batch.rows)
        if queued is None:
            queued = yield from self._queue_when_granted(tp, batch)
        if self.transactional is not None and self.transactional.send_to(tp):
            self.sender.wakeup()
        self._intercept(queued.result)
        return queued.result

    def _queue_when_granted(self, tp: TopicPartition, batch: RowBatch) -> Steps[ProducerBatch]:
        claim = self.parts.pool.claim(len(batch.data))
        try:
            yield from self._granted(claim, self.clock.monotonic() + self.max_block)
            queued = self.accumulator.append_batch(tp, batch.data, batch.rows, claim)
            assert queued is not None, "there is memory for it"
            return queued
        finally:
            self.parts.pool.withdraw(claim)

    def _refuse_rows(self, topic: str, batch: RowBatch) -> ProduceRequestResult:
        """What becomes of rows that are too large: those before them may be on their way, so their receipt tells."""
        result = ProduceRequestResult(topic, batch.partition)
        error = self.intake.too_large(topic, len(batch.data))
        LOG.warning("[%s] %s: %d records failed: %s", self.client_id, topic, batch.rows, error)
        result.complete(error=error)
        self._intercept(result)
        if self.transactional is not None:
            self.transactional.fail_transaction(error)
        else:
            self.sender.batches.unheard.note(Refused(result), 0, batch.rows)
        return result

    def _intercept(self, result: ProduceRequestResult) -> None:
        """The interceptors hear of a batch of rows once, with what became of its first row."""
        if self.interceptors is not None:
            RecordFuture(result, 0, -1, -1, -1).on_delivery(partial(self.interceptors.acknowledged, None))
