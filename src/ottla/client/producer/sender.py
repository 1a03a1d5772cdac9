"""The thread that sends what the accumulator has gathered.

The shell of the producer: drains batches and sends them to their leaders; `InFlightBatches` settles them by the answers.
What can be retried is, by the backoff until the delivery timeout; what cannot fails at once.

One turn, `run_once`: what coordinators are to be asked, what is due to be sent, then one poll, in which answers come
in and are settled. A batch is in exactly one of these places, and each way between them is one method:

    queue ── drain, seal ──► in flight ── answer ──► finished: future, callbacks, memory
      ▲                          │
      └──────── reenqueue ───────┘  retriable, in time, and its numbers may be used again

`delivery.timeout.ms` ends the wait in either place; an answer that comes after it finds the batch in flight no more,
and changes nothing.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, TypeVar
from uuid import UUID
from weakref import WeakMethod

from ottla.client.metadata.cluster import TopicInfo
from ottla.client.metadata.missing_partitions import MissingPartitions
from ottla.client.metrics.producer_sensors import ProducerSensors
from ottla.client.network.client_request import ClientRequest, ClientResponse
from ottla.client.network.network_client import NetworkClient
from ottla.client.producer import batch_events
from ottla.client.producer.config import ProducerConfig
from ottla.client.producer.future import RecordFuture
from ottla.client.producer.in_flight_batches import Departure, InFlightBatches
from ottla.client.producer.producer_batch import ProducerBatch
from ottla.client.producer.record_accumulator import RecordAccumulator
from ottla.client.producer.transaction_manager import TransactionManager
from ottla.client.producer.transaction_sender import TransactionSender
from ottla.client.producer.transactions.decision import Decision, Step
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
"""Seconds that the end of the process waits for a producer that was not closed."""
GRACE = 0.5
"""Seconds of these in which it says nothing: a broker that is there has answered by then."""
LAST_VERSION_BEFORE_V2 = 11
"""Later versions of Produce take a partition into the transaction as they go (KIP-890)."""
LAST_VERSION_WITH_NAMES = 12
"""Later versions of Produce know topics by their id alone, which older brokers do not have."""


class Sender:
    """Sends batches until the producer is closed and everything has its outcome."""

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
        self.tell_statistics: Callable[[float], float] = lambda now: FOREVER
        """Tells the user of our numbers where that is due; returns the seconds until it is."""
        self._metadata = client.metadata
        self.missing_partitions = MissingPartitions(name)
        self._accumulator = accumulator
        self._name = name
        self._asleep = False  # whether it waits
        self._closing = self._forced = self._ended = False
        self._pause = threading.Event()
        self._turns = Turns()
        self._decisions: deque[Decision] = deque()
        """Calls of users to the transaction machine that are run at the beginning of the next turn."""
        accumulator.set_waker(self.wakeup)
        client.on_disowned = accumulator.disown
        self.thread = threading.Thread(target=self._run, name=f"ottla-producer-network-thread | {name}", daemon=True)

    def start(self) -> None:
        """Begin; the end of the process waits a while for what is unsent."""
        EXITS.add(self._finish_at_exit)
        self.thread.start()

    def run(self, steps: Steps[T]) -> T:
        """Do what waits for this to send or to learn something, for a caller that blocks.

        IllegalStateError where a callback of this thread calls and would have to wait: for what only this thread does.
        """
        if self.is_this_thread():
            return run_without_waiting(steps)
        try:
            return self._turns.run(steps)
        except KeyboardInterrupt as interrupt:
            raise interrupt.with_traceback(None) from None  # without the frames in here, which no user wants to read

    def is_this_thread(self) -> bool:
        """Whether the caller is called back from here, and would wait for itself."""
        return threading.current_thread() is self.thread

    def completes(self, future: object) -> bool:
        """True for the future of a record that only this sender will complete."""
        return isinstance(future, RecordFuture) and future.is_of(
            batch.result for batch in self._accumulator.incomplete()
        )

    def in_flight_requests(self) -> list[ClientRequest]:
        """What brokers have not answered yet; RuntimeError as above."""
        return [entry.request for entry in self._client.in_flight_requests]

    def wakeup(self) -> None:
        """There may be something to do; costs next to nothing while the sender is busy anyway."""
        if self._asleep:
            self._asleep = False
            try:
                self._client.wakeup()
            except BaseException:  # of a signal handler, perhaps before the client was woken
                self._asleep = True
                raise

    def decide(self, step: Step) -> Decision:
        """Have the sender's thread run a user's call of the transaction machine, where no signal handler interrupts it."""
        decision = Decision(step)
        self._decisions.append(decision)
        if self._ended:
            self._run_decisions()
        self.wakeup()
        return decision

    def _run_decisions(self) -> None:
        manager, decisions = self._transactions, self._decisions
        while decisions and manager is not None:
            with manager.lock:
                if decisions:
                    decisions.popleft().run(manager.machine)
            manager.report()

    def wakeup_for_metadata(self) -> None:
        """Somebody waits for metadata: have the client ask at once."""
        self._client.wakeup()

    def missing(self, topic: str, partition: int | None, info: TopicInfo | None) -> Exception:
        """The error of somebody who waited for a topic in vain."""
        span_ms = self._config.max_block_ms
        if self._metadata.version == 0:
            return self._client.unavailable(span_ms, "max.block.ms")
        if info is not None:
            return KafkaTimeoutError(
                f"topic {topic!r} has partitions {info.partition_range}, and {partition} did not appear within "
                f"max.block.ms = {span_ms}"
            )
        code = self._metadata.cluster.errors.get(topic, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return KafkaTimeoutError(
            f"topic {topic!r} did not appear within max.block.ms = {span_ms}: {name_of(code)}; create it, or let the "
            f"broker create topics (auto.create.topics.enable)"
        )

    def late(self, call: str, span: float) -> Exception:
        """The error of somebody who waited for a step of a transaction in vain."""
        if self._metadata.version == 0:
            return self._client.unavailable(span * 1000, "max.block.ms, or the call's own timeout")
        manager = self._transactions
        state = "" if manager is None else f" [{manager.machine.status.state.name}]"
        return KafkaTimeoutError(
            f"{call}() did not finish within {span:g} s{state}; call it again to go on waiting: {self._client.trouble()}"
        )

    def initiate_close(self) -> None:
        """Send what is queued, then end."""
        self._accumulator.close()
        self._closing = True
        self._client.wakeup()

    def close(self, timeout: float | None) -> None:
        """End, waiting up to `timeout` seconds; what has no outcome by then fails."""
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
                "[%s] the process ends with %d records undelivered; waiting up to %g s for them: %s",
                self._name,
                left,
                EXIT_TIMEOUT,
                self._client.trouble(),
            )
        self.close(EXIT_TIMEOUT)

    def _run(self) -> None:
        THREAD.is_client, THREAD.completes = True, (WeakMethod(self.completes),)
        while not self._closing:
            self._run_once_safely()
        while not self._forced and self._accumulator.incomplete():
            self._run_once_safely()
        self._abort_transaction()
        self._ended = True
        self.batches.abort()
        self._run_decisions()
        self._turns.end()
        self._client.finish(hurried=self._forced)
        EXITS.remove(self._finish_at_exit)

    def _abort_transaction(self) -> None:
        """Abort what is open at the end; what cannot be aborted in `max.block.ms` is left to its timeout."""
        manager, clock = self._transactions, self._client.clock
        deadline = clock.monotonic() + self._config.max_block_ms / 1000
        while manager is not None and manager.machine.status.has_open_transaction and not self._forced:
            if clock.monotonic() >= deadline:
                LOG.warning("[%s] closed with a transaction open: %s", self._name, self._client.trouble())
                return
            with manager.lock:
                manager.machine.abandon()
            manager.report()
            self._run_once_safely()

    def _run_once_safely(self) -> None:
        try:
            self.run_once()
        except BaseException:
            LOG.exception("[%s] the sender stumbled; it goes on", self._name)
            self._pause.wait(self._config.retry_backoff_ms / 1000)  # what went wrong once may go wrong every time
        self._turns.end()

    def run_once(self) -> None:
        """Send what is due, then wait for answers, news or the next moment something is due."""
        self._asleep, self.batches.any_finished = True, False
        now = self._client.clock.monotonic()
        patience = min(self._mind_transactions(now), self._send_producer_data(now), self.tell_statistics(now))
        self._client.poll(0.0 if self.batches.any_finished else patience)  # who waits hears of it when the turn ends
        self._asleep = False

    def _mind_transactions(self, now: float) -> float:
        """Give up what belongs to a transaction that failed, and send what the coordinators are to be asked."""
        manager, sender = self._transactions, self._transaction_sender
        if manager is None or sender is None:
            return FOREVER
        self._run_decisions()
        if manager.machine.status.is_fatal:
            self.batches.fail_all(manager.machine.status.error or IllegalStateError("the producer failed"))
        elif manager.machine.status.is_aborting:
            for batch in self._accumulator.unsent_batches():
                error = TransactionAbortedError(
                    ErrorCode.TRANSACTION_ABORTABLE, f"{batch.tp}: not sent, its transaction is aborted"
                )
                self.batches.finish(batch, error)
        return sender.send_next(now, incomplete=lambda: bool(self._accumulator.incomplete()))

    def _send_producer_data(self, now: float) -> float:
        """Send to every broker that is ready until none is; returns the seconds to wait for."""
        self.batches.fail_expired(now)
        if isinstance(self._metadata.fatal, AuthenticationError):
            self.batches.fail_refused(self._metadata.fatal)
        while True:
            cluster = self._metadata.cluster
            self.batches.follow_leaders(cluster, now)
            check = self._accumulator.ready(cluster, now)
            for tp in check.leaderless_partitions:
                self._metadata.want(tp.topic, now)
                self._metadata.request_update()
                self.missing_partitions.note(tp, cluster, now)
            patience = min(check.next_check, self._accumulator.next_expiry() - now, self.batches.next_expiry() - now)
            waiting = [node for node in check.nodes if not self._client.ready(cluster.nodes[node], now)]
            ready = check.nodes.difference(waiting)
            for node in waiting:
                patience = min(patience, self._client.delay(node, now) or FOREVER)
            drained = self._accumulator.drain(cluster, ready, self._config.max_request_size, now)
            if not any(drained.values()):
                return max(0.0, patience)
            for node, batches in drained.items():
                sealed = [batch for batch in batches if self._seal(batch, now)]
                if sealed:
                    self._send_produce_request(node, sealed, now)

    def _seal(self, batch: ProducerBatch, now: float) -> bool:
        """Compress a batch and make it bytes; one that cannot be fails alone."""
        written_bytes = 0 if batch.builder is None else batch.size_bytes
        try:
            batch.close()
        except Exception as error:
            self.batches.give_up(batch, error, certain=True)
            return False
        if self._events.active:
            batch_events.tell_drained(self._events, batch, now)
        self.sensors.leaving(batch.tp.topic, batch.count, batch.size_bytes, now - batch.created)
        if written_bytes:  # else it was made before, and has been told of, or came compressed
            self.sensors.compression.of(batch.tp.topic).record(batch.size_bytes / written_bytes)
        return True

    def _send_produce_request(self, node: int, batches: list[ProducerBatch], now: float) -> None:
        cluster = self._metadata.cluster
        by_topic: dict[str, list[PartitionProduceData]] = {}
        for batch in batches:
            part = PartitionProduceData(index=batch.tp.partition, records=batch.payload)
            by_topic.setdefault(batch.tp.topic, []).append(part)
        departure = self.batches.add(node, batches)
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
            lambda response: self._handle_produce_response(response, departure, names, now),
            expect_response=acks != 0,
            max_version=self._max_version(all(topic_id.int for topic_id in ids.values())),
        )
        for topic in by_topic:
            self._metadata.touch(topic, now)
        if self._events.active:
            batch_events.tell_sent(self._events, node, batches)
        self.sensors.requests.record(sum(batch.count for batch in batches))
        self._client.send(request, now)

    def _max_version(self, with_ids: bool) -> int | None:
        manager = self._transactions
        if manager is not None and manager.transactional_id is not None and not manager.machine.v2:
            return LAST_VERSION_BEFORE_V2
        return None if with_ids else LAST_VERSION_WITH_NAMES

    def _handle_produce_response(
        self, response: ClientResponse, departure: Departure, names: Mapping[UUID, str], asked: float
    ) -> None:
        now, batches = response.received, self.batches.unsettled(departure)
        if self._events.active:
            batch_events.tell_completed(self._events, response, asked)
        if response.error is not None:
            outcome: Any = response.error
        elif response.disconnected:
            outcome = KafkaError(ErrorCode.NETWORK_EXCEPTION, response.reason)
        elif response.message is None:
            outcome = None
        else:
            self.sensors.throttled.record(response.message.throttle_time_ms)
            self.batches.settle(response, batches, names)
            return
        for batch in batches:
            self.batches.complete(batch, outcome, now)


def run_without_waiting(steps: Steps[T]) -> T:
    """Run steps in the sender's own thread; IllegalStateError where they would wait."""
    try:
        while next(steps) <= 0:
            pass
    except StopIteration as done:
        outcome: T = done.value
        return outcome
    steps.close()
    raise IllegalStateError(
        "this call would wait inside a callback for the producer's own thread, which runs the callback; make it in "
        "another thread (a queue or a concurrent.futures.ThreadPoolExecutor passes it on)"
    )
