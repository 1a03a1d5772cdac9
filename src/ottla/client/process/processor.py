"""The loop: what was read, what came of it and how far it was read go together, or not at all.

One thread runs it; only `stop` may come from another thread or a signal handler. Sending waits where the producer's
buffer is full, and nothing is read meanwhile.
"""

from __future__ import annotations

import logging
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from ottla.client.consumer import Consumer, ConsumerRecord, RebalanceListener
from ottla.client.process.dead_letters import dead_letter
from ottla.client.process.outgoing import Outgoing, outgoing
from ottla.client.producer import Producer
from ottla.errors import (
    CommitFailedError,
    ConfigError,
    KafkaError,
    KafkaTimeoutError,
    ProducerFencedError,
    RecordsRefusedError,
    RecordTooLargeError,
    TransactionAbortableError,
    WakeupError,
)
from ottla.model import TopicPartition

log = logging.getLogger(__name__)

Function = Callable[[Any], Any]
SIGNALS = (signal.SIGINT, signal.SIGTERM)
POISON = (RecordTooLargeError, RecordsRefusedError)
"""What would happen again if it were tried again."""


def process(consumer: Consumer, producer: Producer, function: Function, **settings: Any) -> None:
    """Run a `Processor` of these arguments until Ctrl-C or SIGTERM, which end it after what is under way."""
    processor = Processor(consumer, producer, function, **settings)
    with stopped_by_signals(processor.stop):
        processor.run()


class Processor(RebalanceListener):
    """Reads `topics`, calls `function` with each record, and sends what it returns to the topic `to`.

    The function returns None, a value, an `Outgoing` (for a key, headers, another topic), or a list or generator of
    them. With `batches` it is called with the list of records that one poll returned.

    Exactly once by transactions: the producer needs a `transactional.id` of its own, the consumer a `group.id`,
    `enable.auto.commit=false` and `isolation.level=read_committed`. With `exactly_once=False` each record is processed
    at least once, and no transactional.id is needed. A commit follows every `commit_interval_ms`.

    A record for which the function raises ends the loop with that exception, and is the first to be read again; with
    `dead_letter_topic` it is sent there instead, with headers that say why, as part of the same transaction.
    """

    def __init__(
        self,
        consumer: Consumer,
        producer: Producer,
        function: Function,
        *,
        topics: Iterable[str],
        to: str | None = None,
        batches: bool = False,
        exactly_once: bool = True,
        commit_interval_ms: int = 100,
        dead_letter_topic: str | None = None,
        name: str = "ottla-process",
    ) -> None:
        self._consumer = consumer
        self._producer = producer
        self._function = function
        self._topics = [topics] if isinstance(topics, str) else list(topics)
        self._to = to
        self._batches = batches
        self._exactly_once = exactly_once
        self._interval = commit_interval_ms / 1000
        self._dead_letter_topic = dead_letter_topic
        self._name = name
        self._stopping = threading.Event()
        self._over = threading.Event()
        self._begun_at: float | None = None
        """When what is under way was begun; None where nothing is."""
        self._first: dict[TopicPartition, int] = {}
        """Where each partition is to be read again from, if it comes to nothing."""
        self._next: dict[TopicPartition, int] = {}
        """How far each has been read."""
        self._failures: list[BaseException] = []
        check_settings(self, consumer, producer)

    @property
    def exactly_once(self) -> bool:
        """Whether by transactions."""
        return self._exactly_once

    @property
    def keeps_letters(self) -> bool:
        """Whether records that cannot be processed are kept."""
        return self._dead_letter_topic is not None

    @property
    def takes_batches(self) -> bool:
        """Whether the function is called with lists."""
        return self._batches

    @property
    def is_over(self) -> bool:
        """Whether `run` has returned or raised."""
        return self._over.is_set()

    def stop(self) -> None:
        """Have `run` commit what is under way and return; from any thread."""
        self._stopping.set()
        self._consumer.wakeup()

    def run(self) -> None:
        """Until `stop`. ProducerFencedError: another processor runs with the same transactional.id."""
        if self._exactly_once:
            self._producer.init_transactions()
        self._consumer.subscribe(self._topics, self)
        try:
            while not self._stopping.is_set():
                self._turn()
            self._finish()
        except BaseException:
            self._give_up()
            raise
        finally:
            self._over.set()

    def on_partitions_revoked(self, partitions: list[TopicPartition]) -> None:
        """All that was read of them has been processed: it counts before another member goes on."""
        self._finish()

    def on_partitions_lost(self, partitions: list[TopicPartition]) -> None:
        """Another member may be at them already: what is under way is to come to nothing."""
        for partition in partitions:
            self._first.pop(partition, None)
        self._start_over()

    def _turn(self) -> None:
        records = self._polled()
        try:
            if records:
                self._begin()
                self._process(records)
            if self._is_due():
                self._finish()
        except TransactionAbortableError as error:
            log.warning("the transaction is aborted, and what it read is read again: %s", error)
            self._start_over()

    def _polled(self) -> list[ConsumerRecord]:
        left = 1.0 if self._begun_at is None else max(0.0, self._begun_at + self._interval - time.monotonic())
        try:
            return list(self._consumer.poll(timeout=left))
        except WakeupError:
            return []

    def _begin(self) -> None:
        if self._begun_at is None:
            if self._exactly_once:
                self._producer.begin_transaction()
            self._begun_at = time.monotonic()

    def _is_due(self) -> bool:
        return self._begun_at is not None and time.monotonic() >= self._begun_at + self._interval

    def _process(self, records: list[ConsumerRecord]) -> None:
        for record in records:
            self._first.setdefault(TopicPartition(record.topic, record.partition), record.offset)
        if self._batches:
            self._send(outgoing(self._function(records)))
        else:
            for record in records:
                self._process_one(record)
        for record in records:
            self._next[TopicPartition(record.topic, record.partition)] = record.offset + 1

    def _process_one(self, record: ConsumerRecord) -> None:
        try:
            # As a list: a generator that raises midway must not leave half of what it was to send.
            results = list(outgoing(self._function(record)))
        except Exception as error:
            if self._dead_letter_topic is None:
                raise
            log.warning("%s-%d offset %d is a dead letter: %s", record.topic, record.partition, record.offset, error)
            results = [dead_letter(record, error, self._dead_letter_topic, self._name)]
        self._send(results)

    def _send(self, results: Iterable[Outgoing]) -> None:
        for each in results:
            topic = each.topic or self._to
            if topic is None:
                raise ConfigError("there is a record to send and nowhere to send it: give `to`, or Outgoing a topic")
            self._producer.send(
                topic,
                each.value,
                key=each.key,
                partition=each.partition,
                timestamp=each.timestamp,
                headers=each.headers,
                on_delivery=self._delivered,
            )

    def _delivered(self, metadata: object, error: BaseException | None) -> None:
        if error is not None:
            self._failures.append(error)

    def _finish(self) -> None:
        """Let what is under way count."""
        if self._begun_at is None:
            return
        if self._exactly_once:
            self._commit_transaction()
        else:
            self._producer.flush()
            if self._failures:
                raise self._failures[0]
            try:
                self._consumer.commit(dict(self._next))
            except CommitFailedError as error:
                log.warning("what was processed is processed again by another member of the group: %s", error)
        self._forget()

    def _commit_transaction(self) -> None:
        try:
            self._insist(
                lambda: self._producer.send_offsets_to_transaction(self._next, self._consumer.group_metadata())
            )
            self._insist(self._producer.commit_transaction)
        except (TransactionAbortableError, CommitFailedError) as error:
            poison = next((each for each in self._failures if isinstance(each, POISON)), None)
            if poison is not None:
                raise poison from error
            log.warning("the transaction is aborted, and what it read is read again: %s", error)
            self._start_over()

    def _insist(self, call: Callable[[], None]) -> None:
        """Again after each time-out, unless it is to end: a broker that is away comes back."""
        while True:
            try:
                call()
                return
            except KafkaTimeoutError as error:
                if self._stopping.is_set():
                    raise
                log.warning("%s; trying again", error)

    def _start_over(self) -> None:
        """Let what is under way come to nothing, and read it again."""
        if self._begun_at is None:
            return
        if self._exactly_once:
            self._insist(self._producer.abort_transaction)
        mine = self._consumer.assignment()
        for partition, offset in self._first.items():
            if partition in mine:
                self._consumer.seek(partition, offset)
        self._forget()

    def _give_up(self) -> None:
        """An exception is on its way to the caller, and no other is to take its place."""
        try:
            if self._begun_at is not None and self._exactly_once:
                self._producer.abort_transaction(1.0)
        except (KafkaError, KafkaTimeoutError, ProducerFencedError) as error:
            log.warning("the transaction is not aborted, the coordinator will do it: %s", error)
        self._forget()

    def _forget(self) -> None:
        self._begun_at = None
        self._first.clear()
        self._next.clear()
        self._failures.clear()


def check_settings(processor: Processor, consumer: Consumer, producer: Producer) -> None:
    """ConfigError for what could not keep the promise, with the remedy."""
    reads, writes = consumer.config, producer.config
    if reads.group_id is None:
        raise ConfigError("group.id is not set: the consumer needs one, for how far it has read is kept by group")
    if reads.enable_auto_commit:
        raise ConfigError("enable.auto.commit = true: set it to false, the offsets are committed with the results")
    if processor.exactly_once and writes.transactional_id is None:
        raise ConfigError(
            "transactional.id is not set: exactly once needs one for each processor; or say exactly_once=False"
        )
    if processor.exactly_once and reads.isolation_level != "read_committed":
        raise ConfigError(
            f"isolation.level = {reads.isolation_level}: set read_committed, or records of transactions that are "
            "aborted would be processed"
        )
    if not processor.exactly_once and writes.transactional_id is not None:
        raise ConfigError("exactly_once=False with a transactional.id: take away one of them")
    if processor.keeps_letters and (writes.key_serializer or writes.value_serializer):
        raise ConfigError(
            "dead_letter_topic with a serializer: dead letters are sent as they came; let the function return bytes"
        )
    if processor.keeps_letters and processor.takes_batches:
        raise ConfigError("dead_letter_topic with batches: of a batch nobody knows which record failed; take records")


@contextmanager
def stopped_by_signals(stop: Callable[[], None]) -> Iterator[None]:
    """SIGINT and SIGTERM mean `stop`, where this is the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, lambda *_: stop()) for number in SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
