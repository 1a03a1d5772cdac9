"""The thread that sends the batches of the accumulator.

The shell of the producer: it drains batches and sends them to their leaders; `InFlightBatches` completes them with the
responses. Retriable errors are retried with backoff until the delivery timeout; others fail at once. Corresponds to
Java's Sender.

One turn (`run_once`) sends coordinator requests, then due batches, then polls once and handles responses. A batch is in
exactly one of these places, and each transition is one method:

    queue ── drain, seal ──► in flight ── response ──► finished: future, callbacks, memory
      ▲                          │
      └──────── reenqueue ───────┘  retriable, in time, and its sequence numbers are still valid

`delivery.timeout.ms` ends the wait in both places. A response after it finds the batch removed and has no effect.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, TypeVar
from uuid import UUID
from weakref import WeakMethod

from ottla.client.metadata.metadata_snapshot import KnownTopic
from ottla.client.metadata.missing_partitions import MissingPartitions
from ottla.client.metrics.producer_sensors import ProducerSensors
from ottla.client.network.client_request import ClientRequest, ClientResponse
from ottla.client.network.network_client import NetworkClient
from ottla.client.producer import batch_events
from ottla.client.producer.config import ProducerConfig
from ottla.client.producer.future import RecordFuture
from ottla.client.producer.in_flight_batches import InFlightBatches, SentBatches
from ottla.client.producer.producer_batch import ProducerBatch
from ottla.client.producer.record_accumulator import RecordAccumulator
from ottla.client.producer.transaction_manager import TransactionManager
from ottla.client.producer.transaction_sender import TransactionSender
from ottla.client.producer.transactions.submitted_call import Step, SubmittedCall
from ottla.client.producer.turns import Turns
from ottla.client.runtime.exits import EXITS
from ottla.client.runtime.future import THREAD
from ottla.client.runtime.steps import Steps
from ottla.errors import (
    AuthenticationError,
    ErrorCode,
    IllegalStateError,
    KafkaError,
    KafkaTimeoutError,
    TransactionAbortedError,
    name_of,
)
from ottla.model import FOREVER
from ottla.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.trace import EventStream

T = TypeVar("T")
LOG = logging.getLogger(__name__)
EXIT_TIMEOUT = 10.0
"""Seconds that the process exit waits for a producer that was not closed."""
GRACE = 0.5
"""Seconds of these without a log line: a reachable broker has responded by then."""
LAST_VERSION_BEFORE_V2 = 11
"""Later versions of Produce add partitions to the transaction implicitly (KIP-890)."""
LAST_VERSION_WITH_NAMES = 12
"""Later versions of Produce identify topics by ids, which older brokers do not have."""


class Sender:
    """Sends batches until the producer is closed and every batch has a result."""

    def __init__(
        self,
        config: ProducerConfig,
        client: NetworkClient,
        accumulator: RecordAccumulator,
        name: str,
        transactions: TransactionManager | None = None,
        events: EventStream | None = None,
    ) -> None:
        self._config = config
        self._events = events or EventStream(client.clock)
        self._transactions = transactions
        self._transaction_sender = (
            None if transactions is None else TransactionSender(client, transactions, config.request_timeout_ms)
        )
        self._client = client
        self.sensors = ProducerSensors(client.sensors.registry)
        self.batches = InFlightBatches(config, client, accumulator, name, transactions, self._events, self.sensors)
        self.report_statistics: Callable[[float], float] = lambda now: FOREVER
        """Calls the user's statistics function if it is due; returns the seconds until it is."""
        self._metadata = client.metadata
        self.missing_partitions = MissingPartitions(name)
        self._accumulator = accumulator
        self._name = name
        self._is_polling = False  # True while it waits in poll
        self._closing = self._forced = self._ended = False
        self._pause = threading.Event()
        self._turns = Turns()
        self._submitted_calls: deque[SubmittedCall] = deque()
        """Calls of users to the transaction machine, run at the start of the next turn."""
        accumulator.set_waker(self.wakeup)
        client.on_disowned = accumulator.disown
        self.thread = threading.Thread(target=self._run, name=f"ottla-producer-network-thread | {name}", daemon=True)

    def start(self) -> None:
        """Start the thread. The process exit waits for unsent records."""
        EXITS.add(self._finish_at_exit)
        self.thread.start()

    def run(self, steps: Steps[T]) -> T:
        """Run steps that wait for the sender, for a blocking caller.

        Raises IllegalStateError if a callback on the sender thread calls and would have to wait for that thread itself.
        """
        if self.is_this_thread():
            return run_without_waiting(steps)
        try:
            return self._turns.run(steps)
        except KeyboardInterrupt as interrupt:
            raise interrupt.with_traceback(None) from None  # hides internal frames from the traceback

    def is_this_thread(self) -> bool:
        """Return True if the caller is a callback on the sender thread, which would wait for itself."""
        return threading.current_thread() is self.thread

    def is_completing(self, future: object) -> bool:
        """Return True for a future that only this sender will complete."""
        return isinstance(future, RecordFuture) and future.is_any_of(
            batch.result for batch in self._accumulator.incomplete()
        )

    def in_flight_requests(self) -> list[ClientRequest]:
        """Return the requests in flight. Raises RuntimeError if another thread changes them meanwhile."""
        return [entry.request for entry in self._client.in_flight_requests]

    def wakeup(self) -> None:
        """Wake the sender for new work; costs almost nothing while it is busy."""
        if self._is_polling:
            self._is_polling = False
            try:
                self._client.wakeup()
            except BaseException:  # for example of a signal handler before the client was woken
                self._is_polling = True
                raise

    def submit_call(self, step: Step) -> SubmittedCall:
        """Run a user's call of the transaction machine on the sender thread, where no signal handler interrupts it."""
        decision = SubmittedCall(step)
        self._submitted_calls.append(decision)
        if self._ended:
            self._run_submitted_calls()
        self.wakeup()
        return decision

    def _run_submitted_calls(self) -> None:
        manager, decisions = self._transactions, self._submitted_calls
        while decisions and manager is not None:
            with manager.lock:
                if decisions:
                    decisions.popleft().run(manager.machine)
            manager.report_changes()

    def wakeup_for_metadata(self) -> None:
        """Make the client request metadata at once, for a waiting caller."""
        self._client.wakeup()

    def missing_topic_error(self, topic: str, partition: int | None, info: KnownTopic | None) -> Exception:
        """Return the error of a call that waited for a topic in vain."""
        span_ms = self._config.max_block_ms
        if self._metadata.version == 0:
            return self._client.unavailable_error(span_ms, "max.block.ms")
        if info is not None:
            return KafkaTimeoutError(
                f"topic {topic!r} has partitions {info.partition_range}, and {partition} was not created within "
                f"max.block.ms = {span_ms}"
            )
        code = self._metadata.cluster.errors.get(topic, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return KafkaTimeoutError(
            f"topic {topic!r} not found within max.block.ms = {span_ms}: {name_of(code)}; create it, or let the "
            f"broker create topics (auto.create.topics.enable)"
        )

    def timeout_error(self, call: str, span: float) -> Exception:
        """Return the error of a transaction step that timed out."""
        if self._metadata.version == 0:
            return self._client.unavailable_error(span * 1000, "max.block.ms, or the call's own timeout")
        manager = self._transactions
        state = "" if manager is None else f" [{manager.machine.status.state.name}]"
        return KafkaTimeoutError(
            f"{call}() did not finish within {span:g} s{state}; call it again to continue waiting: {self._client.describe_trouble()}"
        )

    def initiate_close(self) -> None:
        """Start to close: send what is queued, then end."""
        self._accumulator.close()
        self._closing = True
        self._client.wakeup()

    def close(self, timeout: float | None) -> None:
        """Close, waiting up to `timeout` seconds. Batches without a result by then fail."""
        self.initiate_close()
        try:
            self.thread.join(timeout)
        finally:
            if self.thread.is_alive():
                self._forced = True
                self._pause.set()
                self._client.wakeup()
                self.thread.join(self._config.request_timeout_ms / 1000)
            EXITS.remove(self._finish_at_exit)

    def _finish_at_exit(self) -> None:
        self.initiate_close()
        self.thread.join(GRACE)
        left = sum(batch.count for batch in self._accumulator.incomplete())
        if self.thread.is_alive() and left:
            LOG.warning(
                "[%s] process exit with undelivered records records=%d; waiting up to %g s: %s",
                self._name,
                left,
                EXIT_TIMEOUT,
                self._client.describe_trouble(),
            )
        self.close(EXIT_TIMEOUT)

    def _run(self) -> None:
        THREAD.is_client, THREAD.completion_tests = True, (WeakMethod(self.is_completing),)
        while not self._closing:
            self._run_once_safely()
        while not self._forced and self._accumulator.incomplete():
            self._run_once_safely()
        self._abort_transaction()
        self._ended = True
        self.batches.fail_remaining()
        self._run_submitted_calls()
        self._turns.end_turn()
        self._client.finish(hurried=self._forced)
        EXITS.remove(self._finish_at_exit)

    def _abort_transaction(self) -> None:
        """Abort an open transaction at close, within `max.block.ms`; after that it times out at the coordinator."""
        manager, clock = self._transactions, self._client.clock
        deadline = clock.monotonic() + self._config.max_block_ms / 1000
        while manager is not None and manager.machine.status.has_open_transaction and not self._forced:
            if clock.monotonic() >= deadline:
                LOG.warning(
                    "[%s] closed with an open transaction reason=%s", self._name, self._client.describe_trouble()
                )
                return
            with manager.lock:
                manager.machine.abandon_transaction()
            manager.report_changes()
            self._run_once_safely()

    def _run_once_safely(self) -> None:
        try:
            self.run_once()
        except BaseException:
            LOG.exception("[%s] sender turn failed; it is retried", self._name)
            self._pause.wait(self._config.retry_backoff_ms / 1000)  # a repeated error must not keep the thread busy
        self._turns.end_turn()

    def run_once(self) -> None:
        """Send what is due, then wait for responses, new records or the next deadline."""
        self._is_polling, self.batches.any_finished = True, False
        now = self._client.clock.monotonic()
        patience = min(self._run_transactions(now), self._send_producer_data(now), self.report_statistics(now))
        self._client.poll(
            0.0 if self.batches.any_finished else patience
        )  # waiting callers are notified at the end of the turn
        self._is_polling = False

    def _run_transactions(self, now: float) -> float:
        """Fail the unsent records of an aborted transaction, and send coordinator requests."""
        manager, sender = self._transactions, self._transaction_sender
        if manager is None or sender is None:
            return FOREVER
        self._run_submitted_calls()
        if manager.machine.status.is_fatal:
            self.batches.fail_all(manager.machine.status.error or IllegalStateError("the producer failed"))
        elif manager.machine.status.is_aborting:
            for batch in self._accumulator.unsent_batches():
                error = TransactionAbortedError(
                    ErrorCode.TRANSACTION_ABORTABLE, f"{batch.tp}: not sent, its transaction is aborted"
                )
                self.batches.finish_batch(batch, error)
        return sender.send_next_request(now, incomplete=lambda: bool(self._accumulator.incomplete()))

    def _send_producer_data(self, now: float) -> float:
        """Send batches to every ready broker. Return the seconds to wait."""
        self.batches.fail_expired(now)
        if isinstance(self._metadata.fatal, AuthenticationError):
            self.batches.fail_unauthenticated(self._metadata.fatal)
        while True:
            cluster = self._metadata.cluster
            self.batches.follow_leaders(cluster, now)
            check = self._accumulator.ready(cluster, now)
            for tp in check.leaderless_partitions:
                self._metadata.track_topic(tp.topic, now)
                self._metadata.request_update()
                self.missing_partitions.check_partition(tp, cluster, now)
            patience = min(check.next_check, self._accumulator.next_expiry() - now, self.batches.next_expiry() - now)
            waiting = [node for node in check.nodes if not self._client.ready(cluster.nodes[node], now)]
            ready = check.nodes.difference(waiting)
            for node in waiting:
                patience = min(patience, self._client.connection_delay(node, now) or FOREVER)
            drained = self._accumulator.drain(cluster, ready, self._config.max_request_size, now)
            if not any(drained.values()):
                return max(0.0, patience)
            for node, batches in drained.items():
                sealed = [batch for batch in batches if self._seal_batch(batch, now)]
                if sealed:
                    self._send_produce_request(node, sealed, now)

    def _seal_batch(self, batch: ProducerBatch, now: float) -> bool:
        """Compress a batch and encode it. A batch that fails alone is reported as failed."""
        written_bytes = 0 if batch.builder is None else batch.size_bytes
        try:
            batch.close()
        except Exception as error:
            self.batches.fail_batch(batch, error, certain=True)
            return False
        if self._events.active:
            batch_events.record_drained(self._events, batch, now)
        self.sensors.record_sent_batch(batch.tp.topic, batch.count, batch.size_bytes, now - batch.created)
        if written_bytes:  # otherwise it was compressed before, and recorded then
            self.sensors.compression.sensor_for(batch.tp.topic).record(batch.size_bytes / written_bytes)
        return True

    def _send_produce_request(self, node: int, batches: list[ProducerBatch], now: float) -> None:
        cluster = self._metadata.cluster
        by_topic: dict[str, list[PartitionProduceData]] = {}
        for batch in batches:
            part = PartitionProduceData(index=batch.tp.partition, records=batch.payload)
            by_topic.setdefault(batch.tp.topic, []).append(part)
        sent = self.batches.add(node, batches)
        manager = self._transactions
        transactional_id = None if manager is None else manager.transactional_id
        ids = {topic: cluster.topic_id(topic) for topic in by_topic}
        data = [
            TopicProduceData(name=topic, topic_id=ids[topic], partition_data=parts) for topic, parts in by_topic.items()
        ]
        names = {topic_id: topic for topic, topic_id in ids.items()}
        acks = self._config.acks_number
        timeout_ms = self._config.request_timeout_ms
        request = ClientRequest(
            node,
            ProduceRequest(transactional_id, acks, timeout_ms, data),
            now,
            timeout_ms,
            lambda response: self._handle_produce_response(response, sent, names, now),
            expect_response=acks != 0,
            max_version=self._max_version(all(topic_id.int for topic_id in ids.values())),
        )
        for topic in by_topic:
            self._metadata.touch_topic(topic, now)
        if self._events.active:
            batch_events.record_sent(self._events, node, batches)
        self.sensors.requests.record(sum(batch.count for batch in batches))
        self._client.send(request, now)

    def _max_version(self, with_ids: bool) -> int | None:
        manager = self._transactions
        if manager is not None and manager.transactional_id is not None and not manager.machine.v2:
            return LAST_VERSION_BEFORE_V2
        return None if with_ids else LAST_VERSION_WITH_NAMES

    def _handle_produce_response(
        self, response: ClientResponse, sent: SentBatches, names: Mapping[UUID, str], sent_at: float
    ) -> None:
        now, batches = response.received, self.batches.find_unanswered(sent)
        if self._events.active:
            batch_events.record_completed(self._events, response, sent_at)
        if response.error is not None:
            outcome: Any = response.error
        elif response.disconnected:
            outcome = KafkaError(ErrorCode.NETWORK_EXCEPTION, response.reason)
        elif response.message is None:
            outcome = None
        else:
            self.sensors.throttled.record(response.message.throttle_time_ms)
            self.batches.handle_response(response, batches, names)
            return
        for batch in batches:
            self.batches.complete_batch(batch, outcome, now)


def run_without_waiting(steps: Steps[T]) -> T:
    """Run steps on the sender thread. Raises IllegalStateError if they would wait."""
    try:
        while next(steps) <= 0:
            pass
    except StopIteration as done:
        outcome: T = done.value
        return outcome
    steps.close()
    raise IllegalStateError(
        "this call would deadlock: it waits for the producer's thread, which runs this callback; call it from "
        "another thread (a queue or a concurrent.futures.ThreadPoolExecutor passes it on)"
    )
