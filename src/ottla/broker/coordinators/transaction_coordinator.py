"""The coordinator of transactions: its machines over `__transaction_state`, and the markers that follow a decision.

    EndTxn ──► machine: prepared ──► markers into every partition ──► machine: completed ──► answer

A transactional id belongs to the partition that its hash, Java's, says. On one broker the markers are written in the
same breath, so a producer rarely hears that its last transaction is still being ended. What a crash or a failing disk
leaves prepared is finished later.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from typing import Any

from ottla.broker.cluster.producer_ids import ProducerIds
from ottla.broker.cluster.topics import CONSUMER_OFFSETS, TRANSACTION_STATE
from ottla.broker.coordinators.end_markers import EndMarkers, TransactionEnd
from ottla.broker.coordinators.faults import fault_in
from ottla.broker.coordinators.surroundings import Surroundings
from ottla.broker.machines.runtime import Coding, Hooks, Runtime
from ottla.broker.partitions.partition import Partition
from ottla.coordination.transactions.events import (
    Answer,
    EndRequested,
    MarkersWritten,
    PartitionsAdded,
    ProducerRequested,
    TimePassed,
)
from ottla.coordination.transactions.records import decode_record, encode_record
from ottla.coordination.transactions.state import TransactionState
from ottla.coordination.transactions.transaction import Transaction
from ottla.coordination.transactions.transactions import Transactions
from ottla.errors import ErrorCode, KafkaError
from ottla.java_hash import positive_java_hash
from ottla.model import TopicPartition
from ottla.storage.batches.damage import OutOfServiceError

log = logging.getLogger(__name__)

RETRY_SECONDS = 0.2
"""How soon markers that could not be written are tried again."""
GONE = (ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
"""A partition that is no more needs no marker."""


CODING = Coding(encode_record, decode_record)


class TransactionCoordinator:
    """Every transactional id of this broker."""

    def __init__(self, surroundings: Surroundings, producer_ids: ProducerIds, markers: EndMarkers) -> None:
        self._surroundings = surroundings
        self._topics = surroundings.topics
        self._clock = surroundings.clock
        self._producer_ids = producer_ids
        self._markers = markers
        self._runtimes: dict[Partition, Runtime[Transactions]] = {}
        self._retrying = False
        self._marked: dict[tuple[str, TransactionEnd], set[TopicPartition]] = {}
        """Where the marker is already, of those that are not everywhere: a sick disk must not fill the sound ones."""

    def begin(self, transactional_id: str, timeout_ms: int, producer_id: int, epoch: int) -> Answer:
        """An id and epoch for a producer; whoever had them is fenced, and its transaction aborted."""
        runtime = self._runtime(transactional_id, make=True)

        def event(ticket: int) -> ProducerRequested:
            fresh = self._fresh_id(runtime, transactional_id)
            now_ms = self._clock.wall_ms()
            return ProducerRequested(ticket, transactional_id, timeout_ms, fresh, now_ms, producer_id, epoch)

        answer: Answer = runtime.ask(event)
        # What was left open has just been aborted, and its markers are written: the second try succeeds, and the
        # client need not come again.
        if answer.code == ErrorCode.CONCURRENT_TRANSACTIONS and self._finish(runtime, transactional_id):
            answer = runtime.ask(event)
        return answer

    def add(
        self, transactional_id: str, producer_id: int, epoch: int, partitions: frozenset[TopicPartition], version: int
    ) -> int:
        """Take partitions into a producer's transaction, which begins with the first; an error code."""
        runtime = self._runtime(transactional_id)
        now_ms = self._clock.wall_ms()
        answer: Answer = runtime.ask(
            lambda ticket: PartitionsAdded(ticket, transactional_id, producer_id, epoch, partitions, now_ms, version)
        )
        return answer.code

    def error_in(
        self, transactional_id: str, producer_id: int, epoch: int, partitions: frozenset[TopicPartition]
    ) -> int:
        """What keeps a producer from writing to these partitions within its transaction."""
        machine = self._runtime(transactional_id).machine
        error = machine.error_in(transactional_id, producer_id, epoch)
        if not error and machine.missing(transactional_id, partitions):
            return ErrorCode.TRANSACTION_ABORTABLE
        return error

    def end(self, transactional_id: str, producer_id: int, epoch: int, *, commit: bool, version: int) -> Answer:
        """Commit or abort; the answer has the id and epoch of the next transaction."""
        runtime = self._runtime(transactional_id)
        now_ms = self._clock.wall_ms()

        def event(ticket: int) -> EndRequested:
            fresh = self._fresh_id(runtime, transactional_id)
            return EndRequested(ticket, transactional_id, producer_id, epoch, commit, fresh, now_ms, version)

        answer: Answer = runtime.ask(event)
        self._finish(runtime, transactional_id)
        return answer

    def find(self, transactional_id: str) -> Transaction | None:
        return self._runtime(transactional_id).machine.by_id.get(transactional_id)

    def fault_of(self, transactional_id: str) -> OutOfServiceError | None:
        """What keeps an id out of service until a person has looked at it."""
        return fault_in(lambda: self._runtime(transactional_id))

    def all(self) -> Iterator[Transaction]:
        """Every id but those that are out of service."""
        for partition in self._partitions():
            with suppress(OutOfServiceError):
                if self._is_stored(partition):
                    yield from self._runtime_of(partition).machine.by_id.values()

    def sweep(self) -> None:
        """Abort what takes too long, forget ids that nobody uses, and finish what was left prepared."""
        for partition in self._partitions():
            try:
                if self._is_stored(partition):
                    self._sweep(partition)
            except OutOfServiceError:
                pass  # as was said
            except KafkaError as error:  # the transactions of the other partitions go on
                log.error("%s: %s", partition.topic_partition, error)

    def _sweep(self, partition: Partition) -> None:
        expiration_ms = self._topics.config.transactional_id_expiration_ms
        runtime = self._runtime_of(partition)
        now_ms = self._clock.wall_ms()
        late, unused = runtime.ask(lambda ticket: TimePassed(ticket, now_ms, expiration_ms))
        # What is aborted here is ended by `_finish_all`, like everything that is prepared.
        if late:
            log.info("%s: aborted %d transactions that took too long", partition.topic_partition, late)
        if unused:
            log.info("%s: forgot %d transactional ids that nobody used", partition.topic_partition, unused)
        self._finish_all(runtime)

    def topics_deleted(self, names: Collection[str]) -> None:
        """Forget all machines where it was their own topic."""
        if TRANSACTION_STATE in names:
            self._runtimes.clear()
            self._marked.clear()

    def offsets_partition(self, group: str) -> TopicPartition:
        """Where the offsets of a group are kept, which takes part in the transaction that commits them."""
        topic = self._topics.ensure(CONSUMER_OFFSETS)
        count = len(getattr(topic, "partitions", ()))
        if not count:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"{CONSUMER_OFFSETS} cannot be made")
        return TopicPartition(CONSUMER_OFFSETS, positive_java_hash(group) % count)

    def _fresh_id(self, runtime: Runtime[Transactions], transactional_id: str) -> int:
        return self._producer_ids.next() if runtime.machine.wants_producer_id(transactional_id) else -1

    def _finish_all(self, runtime: Runtime[Transactions]) -> None:
        for transaction in runtime.machine.unfinished():
            self._finish(runtime, transaction.transactional_id)

    def _finish(self, runtime: Runtime[Transactions], transactional_id: str) -> bool:
        """Write the markers of a prepared transaction; whether all are there. What fails is tried again later."""
        transaction = runtime.machine.by_id.get(transactional_id)
        if transaction is None or not transaction.state.is_prepared:
            return False
        end = TransactionEnd(
            transaction.producer_id,
            transaction.producer_epoch,
            transaction.state == TransactionState.PREPARE_COMMIT,
            version=transaction.version,
        )
        # The outcome is in the log, so each of these may be tried as often as it takes. The answer does not wait for that:
        # the next request of this id hears CONCURRENT_TRANSACTIONS until all markers are there.
        marked = self._marked.setdefault((transactional_id, end), set())
        for topic_partition in sorted(transaction.partitions - marked):
            if self._markers.write(topic_partition, end) in GONE:
                marked.add(topic_partition)
        try:
            if marked >= transaction.partitions:
                now_ms = self._clock.wall_ms()
                runtime.ask(lambda ticket: MarkersWritten(ticket, transactional_id, now_ms))
                del self._marked[transactional_id, end]
                return True
        except KafkaError as error:
            log.error("the end of the transaction of %r cannot be kept: %s", transactional_id, error)
        self._try_again()
        return False

    def _try_again(self) -> None:
        if not self._retrying:
            self._retrying = True
            self._surroundings.timers.at(self._clock.monotonic() + RETRY_SECONDS, self._retry)

    def _retry(self) -> None:
        self._retrying = False
        for runtime in list(self._runtimes.values()):
            self._finish_all(runtime)

    def _is_stored(self, partition: Partition) -> bool:
        return partition in self._runtimes or bool(partition.log.end_offset)

    def _partitions(self) -> Iterator[Partition]:
        topic = self._topics.named(TRANSACTION_STATE)
        for index in range(len(topic.partitions) if topic else 0):
            partition = self._surroundings.partitions.find(TRANSACTION_STATE, index)
            if partition is not None:
                yield partition

    def _runtime(self, transactional_id: str, *, make: bool = False) -> Runtime[Transactions]:
        made: Any = self._topics.ensure(TRANSACTION_STATE) if make else None
        topic = self._topics.named(TRANSACTION_STATE)
        if topic is None:
            reason = getattr(made, "error_message", "nobody has begun a transaction yet")
            code = ErrorCode.COORDINATOR_NOT_AVAILABLE if make else ErrorCode.INVALID_PRODUCER_ID_MAPPING
            raise KafkaError(code, f"there is no {TRANSACTION_STATE}: {reason}")
        partition = self._surroundings.partitions.find(
            TRANSACTION_STATE, positive_java_hash(transactional_id) % len(topic.partitions)
        )
        assert partition is not None, "a topic has all of its partitions"
        return self._runtime_of(partition)

    def _runtime_of(self, partition: Partition) -> Runtime[Transactions]:
        runtime = self._runtimes.get(partition)
        if runtime is None:
            if partition.fault is not None:
                raise partition.fault
            try:
                # Built from its log when first asked for; then what a crash left prepared is finished.
                runtime = self._runtimes[partition] = self._built(partition)
            except OutOfServiceError as error:
                raise partition.take_out_of_service(error) from None
            self._finish_all(runtime)
        return runtime

    def _built(self, partition: Partition) -> Runtime[Transactions]:
        appended: Callable[[int], None] = lambda size: self._surroundings.appended(partition, size)  # noqa: E731
        return Runtime(
            Transactions,
            partition.log,
            CODING,
            self._clock,
            durable=False,
            hooks=Hooks(appended=appended),
            leader_epoch=lambda: partition.leader_epoch,
        )
