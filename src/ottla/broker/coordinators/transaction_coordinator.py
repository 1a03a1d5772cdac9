"""The coordinator of transactions: its machines over `__transaction_state`, and the markers that follow a decision.

    EndTxn ──► machine: prepared ──► answer
                                └──► markers into every partition ──► machine: completed

A transactional id belongs to the partition that its hash, Java's, says. On one broker the markers are written in the
same breath, so a producer rarely hears that its last transaction is still being ended. What a crash or a failing disk
leaves prepared is finished later.

In a cluster the ids of a partition are with its leader. Nothing is answered, and no marker leaves, before what was decided is committed: another
coordinator might decide otherwise. Markers go to the leaders of their partitions. Who comes to lead a partition reads its
log at once, and finishes what the last one left prepared; who leads no more forgets it, and what is told of its markers.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from functools import partial
from typing import Any

from ottla.broker.cluster.own_topics import CONSUMER_OFFSETS, TRANSACTION_STATE
from ottla.broker.cluster.producer_ids import ProducerIds
from ottla.broker.cluster.topics import partition_of_key
from ottla.broker.coordinators.commitment import ensure_may_append
from ottla.broker.coordinators.deliveries import Deliveries, Write
from ottla.broker.coordinators.faults import StillLoading, fault_in, not_here
from ottla.broker.coordinators.surroundings import Surroundings
from ottla.broker.disk import Disk
from ottla.broker.machines.runtime import Coding, Hooks, Pending, Runtime
from ottla.broker.partitions.partition import Partition
from ottla.coordination.cluster.topic import Topic
from ottla.coordination.transactions.events import (
    Answer,
    EndRequested,
    MarkersWritten,
    PartitionsAdded,
    ProducerRequested,
    TimePassed,
)
from ottla.coordination.transactions.records import decode_record, encode_record
from ottla.coordination.transactions.transaction import V2, Transaction
from ottla.coordination.transactions.transactions import Transactions
from ottla.errors import ErrorCode, KafkaError
from ottla.model import TopicPartition
from ottla.storage.batches.damage import OutOfServiceError

log = logging.getLogger(__name__)

RETRY_SECONDS = 0.2
"""How soon markers that could not be written are tried again."""
LONG_BYTES = 4 * 1024 * 1024
"""A log from this size on is read in a thread: it takes longer than a loop may stand still."""
Later = Callable[[Any], None]
"""Called with what is answered once it is committed, or with the KafkaError that keeps it from being."""

CODING = Coding(encode_record, decode_record)


class TransactionCoordinator:
    """Every transactional id of this broker.

    Where an answer is `Pending`, `later` is told it. Without `later` it comes at once, also if it is not committed.
    """

    def __init__(self, surroundings: Surroundings, producer_ids: ProducerIds, write: Write, disk: Disk) -> None:
        self._surroundings = surroundings
        self._topics = surroundings.topics
        self._clock = surroundings.clock
        self._commitment = surroundings.commitment
        self._producer_ids = producer_ids
        self._disk = disk
        self._deliveries = Deliveries(write, self._try_again)
        self._runtimes: dict[Partition, Runtime[Transactions]] = {}
        self._loading: dict[Partition, object] = {}
        """Partitions that are being read."""
        self._retrying = False

    def begin(
        self, transactional_id: str, timeout_ms: int, producer_id: int, epoch: int, later: Later | None = None
    ) -> Answer | Pending:
        """An id and epoch for a producer; whoever had them is fenced, and its transaction aborted."""
        partition = self._partition_of(transactional_id, make=True)
        runtime = self._runtime_of(partition)

        def event(ticket: int) -> ProducerRequested:
            fresh = self._fresh_id(runtime, transactional_id)
            now_ms = self._clock.wall_ms()
            return ProducerRequested(ticket, transactional_id, timeout_ms, fresh, now_ms, producer_id, epoch)

        answer = self._ask_and_finish(partition, transactional_id, event, later)
        # What was left open has just been aborted. Where its markers are written already the second try succeeds, and the
        # client need not come again.
        if isinstance(answer, Pending) or answer.code != ErrorCode.CONCURRENT_TRANSACTIONS:
            return answer
        transaction = runtime.machine.by_id.get(transactional_id)
        return self._ask(runtime, event, later) if transaction is not None and transaction.is_idle else answer

    def add(
        self,
        transactional_id: str,
        producer_id: int,
        epoch: int,
        partitions: frozenset[TopicPartition],
        version: int,
        later: Later | None = None,
    ) -> int | Pending:
        """Take partitions into a producer's transaction, which begins with the first; an error code."""
        runtime = self._runtime(transactional_id)
        now_ms = self._clock.wall_ms()

        def event(ticket: int) -> PartitionsAdded:
            return PartitionsAdded(ticket, transactional_id, producer_id, epoch, partitions, now_ms, version)

        answer = self._ask(runtime, event, None if later is None else partial(tell_code, later))
        return answer if isinstance(answer, Pending) else answer.code

    def error_in(
        self,
        transactional_id: str,
        producer_id: int,
        epoch: int,
        partitions: frozenset[TopicPartition],
        later: Later | None = None,
    ) -> int | Pending:
        """What keeps a producer from writing to these partitions within its transaction."""
        partition = self._partition_of(transactional_id)
        machine = self._runtime_of(partition).machine
        code: int = machine.error_in(transactional_id, producer_id, epoch)
        if not code and machine.missing(transactional_id, partitions):
            code = ErrorCode.TRANSACTION_ABORTABLE
        tell = later or (lambda _: None)
        held = later is not None and self._commitment.hold(partition, lambda error: tell(error or code))
        return Pending(0) if held else code

    def take_part(
        self,
        transactional_id: str,
        producer_id: int,
        epoch: int,
        partitions: frozenset[TopicPartition],
        *,
        verify_only: bool,
        later: Later | None = None,
    ) -> int | Pending:
        """On behalf of who writes within a transaction (KIP-890): take these partitions in, or only say whether they are."""
        about = (transactional_id, producer_id, epoch, partitions)
        if verify_only:
            return self.error_in(*about, later=later)
        return self.add(*about, version=V2, later=later)

    def end(
        self,
        transactional_id: str,
        producer_id: int,
        epoch: int,
        *,
        commit: bool,
        version: int,
        later: Later | None = None,
    ) -> Answer | Pending:
        """Commit or abort; the answer has the id and epoch of the next transaction."""
        partition = self._partition_of(transactional_id)
        runtime = self._runtime_of(partition)
        now_ms = self._clock.wall_ms()

        def event(ticket: int) -> EndRequested:
            fresh = self._fresh_id(runtime, transactional_id)
            return EndRequested(ticket, transactional_id, producer_id, epoch, commit, fresh, now_ms, version)

        return self._ask_and_finish(partition, transactional_id, event, later)

    def find(self, transactional_id: str) -> Transaction | None:
        return self._runtime(transactional_id).machine.by_id.get(transactional_id)

    def fault_of(self, transactional_id: str) -> OutOfServiceError | None:
        """What keeps an id out of service until a person has looked at it."""
        return fault_in(lambda: self._runtime(transactional_id))

    def all(self) -> Iterator[Transaction]:
        """Every id but those that are out of service."""
        for partition in self._led():
            with suppress(OutOfServiceError):
                if self._is_stored(partition):
                    yield from self._runtime_of(partition).machine.by_id.values()

    def sweep(self) -> None:
        """Abort what takes too long, forget ids that nobody uses, and finish what was left prepared."""
        for partition in self._led():
            try:
                if self._is_stored(partition):
                    self._sweep(partition)
            except (OutOfServiceError, StillLoading):
                pass  # as was said, or is to come
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
        self._finish_all(partition)

    def topics_deleted(self, names: Collection[str]) -> None:
        """Forget all machines where it was their own topic."""
        if TRANSACTION_STATE in names:
            for partition in [*self._runtimes, *self._loading]:
                self.retire(partition)

    def take_up(self, partition: Partition) -> None:
        """Finish what the coordinator before this one left prepared."""
        with suppress(OutOfServiceError, StillLoading):
            if self._is_stored(partition):
                self._runtime_of(partition)

    def retire(self, partition: Partition) -> None:
        """Forget the ids of a partition that is another's now; what is being read of it is not taken up."""
        self._loading.pop(partition, None)
        runtime = self._runtimes.pop(partition, None)
        self._deliveries.retire(partition)
        if runtime is not None:
            runtime.retire(not_here(partition.topic_partition))

    def offsets_partition(self, group: str) -> TopicPartition:
        """Where the offsets of a group are kept, which takes part in the transaction that commits them."""
        topic = self._surroundings.ensure(CONSUMER_OFFSETS)
        if not isinstance(topic, Topic):
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"{CONSUMER_OFFSETS} cannot be made")
        return partition_of_key(topic, group)

    def _fresh_id(self, runtime: Runtime[Transactions], transactional_id: str) -> int:
        return self._producer_ids.next() if runtime.machine.wants_producer_id(transactional_id) else -1

    def _ask(
        self, runtime: Runtime[Transactions], event: Callable[[int], Any], later: Later | None
    ) -> Answer | Pending:
        answer: Answer | Pending = runtime.ask(event, later)
        return answer

    def _ask_and_finish(
        self, partition: Partition, transactional_id: str, event: Callable[[int], Any], later: Later | None
    ) -> Answer | Pending:
        """The machine's answer; what is prepared by then is ended, before a later answer is told."""
        runtime = self._runtime_of(partition)

        def tell(answer: Answer | KafkaError) -> None:
            if not isinstance(answer, KafkaError) and prepared is not None:
                self._deliver(partition, prepared)
            if later is not None:
                later(answer)

        answer = self._ask(runtime, event, None if later is None else tell)
        prepared = runtime.machine.prepared(transactional_id)
        if not isinstance(answer, Pending) and prepared is not None:
            self._deliver(partition, prepared)
        return answer

    def _finish_all(self, partition: Partition) -> None:
        """End all that is prepared by now, once that is committed."""
        unfinished = list(self._runtimes[partition].machine.unfinished())

        def go_on(error: KafkaError | None) -> None:
            if error is not None:
                self._try_again()
                return
            for transaction in unfinished:
                self._deliver(partition, transaction)

        if unfinished and not self._commitment.hold(partition, go_on):
            go_on(None)

    # The outcome is in the log, so each marker may be tried as often as it takes. The answer does not wait for that:
    # the next request of this id hears CONCURRENT_TRANSACTIONS until all markers are there.
    def _deliver(self, partition: Partition, transaction: Transaction) -> None:
        runtime, name = self._runtimes.get(partition), transaction.transactional_id
        if runtime is not None and runtime.machine.by_id.get(name) == transaction:
            over = partial(self._complete, partition, name)
            self._deliveries.deliver(partition, transaction, partition.leader_epoch, over)

    def _complete(self, partition: Partition, transactional_id: str) -> None:
        now_ms = self._clock.wall_ms()
        try:
            self._runtimes[partition].ask(lambda ticket: MarkersWritten(ticket, transactional_id, now_ms))
        except KafkaError as error:
            text = f"the end of the transaction of {transactional_id!r} cannot be kept: {error}"
            self._surroundings.partitions.complaints.tell(text)
            self._try_again()
        else:
            self._deliveries.forget(partition, transactional_id)

    def _try_again(self) -> None:
        if not self._retrying:
            self._retrying = True
            self._surroundings.timers.at(self._clock.monotonic() + RETRY_SECONDS, self._retry)

    def _retry(self) -> None:
        self._retrying = False
        for partition in list(self._runtimes):
            try:
                self._finish_all(partition)
            except Exception:
                log.exception("the ends of transactions could not be written, and are retried partition=%s", partition)
                self._try_again()

    def _is_stored(self, partition: Partition) -> bool:
        return partition in self._runtimes or bool(partition.log.end_offset)

    def _led(self) -> Iterator[Partition]:
        topic = self._topics.named(TRANSACTION_STATE)
        for index in range(len(topic.partitions) if topic else 0):
            partition = self._surroundings.partitions.find(TRANSACTION_STATE, index)
            if partition is not None and partition.leads:
                yield partition

    def _runtime(self, transactional_id: str) -> Runtime[Transactions]:
        return self._runtime_of(self._partition_of(transactional_id))

    def _partition_of(self, transactional_id: str, *, make: bool = False) -> Partition:
        made: Any = self._surroundings.ensure(TRANSACTION_STATE) if make else None
        topic = self._topics.named(TRANSACTION_STATE)
        if topic is None:
            reason = getattr(made, "error_message", "nobody has begun a transaction yet")
            code = ErrorCode.COORDINATOR_NOT_AVAILABLE if make else ErrorCode.INVALID_PRODUCER_ID_MAPPING
            raise KafkaError(code, f"there is no {TRANSACTION_STATE}: {reason}")
        place = partition_of_key(topic, transactional_id)
        partition = self._surroundings.partitions.find(*place)
        if partition is None or not partition.leads:
            raise not_here(place)
        return partition

    def _runtime_of(self, partition: Partition) -> Runtime[Transactions]:
        runtime = self._runtimes.get(partition)
        if runtime is not None:
            return runtime
        if partition.fault is not None:
            raise partition.fault
        if partition.log.size_bytes >= LONG_BYTES:
            self._load(partition)
            raise StillLoading(partition)
        try:
            # Built from its log when first asked for; then what a crash left prepared is finished.
            runtime = self._runtimes[partition] = self._built(partition)
        except OutOfServiceError as error:
            raise self._surroundings.partitions.take_out_of_service(partition, error) from None
        self._finish_all(partition)
        return runtime

    def is_loading(self, partition: Partition) -> bool:
        """Whether a partition's log is being read beside the loop."""
        return partition in self._loading

    def relocate(self, partition: Partition) -> None:
        """Go on with the log that a partition has now, in another directory."""
        runtime = self._runtimes.get(partition)
        if runtime is not None:
            runtime.log = partition.log

    def _load(self, partition: Partition) -> None:
        """Read a long log beside the loop; nothing is appended to it until its machine is there."""
        if partition in self._loading:
            return
        term = self._loading[partition] = object()
        built: list[Runtime[Transactions]] = []

        def done(error: BaseException | None) -> None:
            if self._loading.get(partition) is not term:
                return  # another led it meanwhile, and may have written to it, or cut it
            del self._loading[partition]
            if isinstance(error, OutOfServiceError):
                self._surroundings.partitions.take_out_of_service(partition, error)
            elif error is not None:
                log.error("the transactions in %s cannot be read: %s", partition.topic_partition, error)
            else:
                self._runtimes[partition] = built[0]
                self._finish_all(partition)

        self._disk.submit(lambda: built.append(self._built(partition)), done)

    def _built(self, partition: Partition) -> Runtime[Transactions]:
        return Runtime(
            lambda: Transactions(self._clock.monotonic()),
            partition.log,
            CODING,
            self._clock,
            durable=False,
            hooks=Hooks(
                appended=lambda size: self._surroundings.appended(partition, size),
                check=lambda: ensure_may_append(partition),
                hold=lambda hand_out: self._commitment.hold(partition, hand_out),
            ),
            leader_epoch=lambda: partition.leader_epoch,
        )


def tell_code(later: Later, answer: Answer | KafkaError) -> None:
    later(answer if isinstance(answer, KafkaError) else answer.code)
