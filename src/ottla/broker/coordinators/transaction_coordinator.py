"""The transaction coordinator: transactional ids, stored in `__transaction_state`, and the markers that end their transactions.

    EndTxn ──► shard: PrepareCommit or PrepareAbort ──► response
                                 └──► a marker in every partition ──► shard: CompleteCommit or CompleteAbort

`CoordinatorRuntime` loads and retires the shards; `coordination.transactions.Transactions` decides. On a single broker the markers are
written within the same request, so a producer rarely receives CONCURRENT_TRANSACTIONS. Transactions that a crash or a failing disk left
prepared are completed later, by the retry timer or by the next sweep.

In a cluster no response and no marker is sent before the decision is committed, because another coordinator could decide otherwise.
Markers are sent to the leaders of their partitions. A broker that is elected leader of a partition reads its log at once and
completes the prepared transactions. A broker that loses the leadership drops the shard and ignores responses about its markers.

Sources: KIP-98, KIP-890; Apache Kafka's TransactionCoordinator and TransactionMarkerChannelManager.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from ottla.broker.coordinators.coordinator_runtime import (
    CoordinatorContext,
    CoordinatorListener,
    CoordinatorLoadInProgressError,
    CoordinatorRuntime,
)
from ottla.broker.coordinators.marker_deliveries import MarkerDeliveries, WriteMarker
from ottla.broker.metadata.internal_topics import CONSUMER_OFFSETS, TRANSACTION_STATE
from ottla.broker.metadata.producer_ids import ProducerIds
from ottla.broker.metadata.topics import find_partition_of_key
from ottla.broker.replica_manager.partition import Partition
from ottla.broker.state_machines.runtime import Coding, PendingReply, Runtime
from ottla.coordination.cluster.topic import ClusterTopic
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

if TYPE_CHECKING:
    from ottla.broker.coordinators.remote_coordinators import Verification, VerificationCodes

log = logging.getLogger(__name__)

RETRY_SECONDS = 0.2
"""The delay before markers that could not be written are sent again."""
Later = Callable[[Any], None]
"""Called with the response once it is committed, or with the KafkaError that prevents that."""

CODING = Coding(encode_record, decode_record)


class TransactionCoordinator(CoordinatorListener[Transactions]):
    """The transactional ids that this broker coordinates.

    Methods with a parameter `later` return `PendingReply` if the response is not committed yet, and call `later` with it when it is.
    Without `later` the response is returned at once, committed or not.
    """

    def __init__(self, context: CoordinatorContext, producer_ids: ProducerIds, write_marker: WriteMarker) -> None:
        self._context = context
        self._topics = context.topics
        self._clock = context.clock
        self._commitment = context.commitment
        self._producer_ids = producer_ids
        self._deliveries = MarkerDeliveries(write_marker, self._retry_later)
        new_shard = lambda: Transactions(context.clock.monotonic())  # noqa: E731
        self._runtime = CoordinatorRuntime(TRANSACTION_STATE, new_shard, CODING, self, context)
        self._retrying = False

    def init_producer_id(
        self, transactional_id: str, timeout_ms: int, producer_id: int, epoch: int, later: Later | None = None
    ) -> Answer | PendingReply:
        """Return a producer id and epoch (InitProducerId). The previous producer is fenced and its transaction aborted."""
        self._runtime.ensure_topic()
        partition = self._find_partition(transactional_id)
        runtime = self._runtime.load(partition)

        def event(ticket: int) -> ProducerRequested:
            fresh = self._new_producer_id(runtime, transactional_id)
            now_ms = self._clock.wall_ms()
            return ProducerRequested(ticket, transactional_id, timeout_ms, fresh, now_ms, producer_id, epoch)

        answer = self._write_and_complete(partition, transactional_id, event, later)
        # The open transaction of the previous producer has just been aborted. If its markers are already written, a second try
        # succeeds and saves the client a retry.
        if isinstance(answer, PendingReply) or answer.code != ErrorCode.CONCURRENT_TRANSACTIONS:
            return answer
        transaction = runtime.machine.by_id.get(transactional_id)
        return runtime.submit(event, later) if transaction is not None and transaction.is_idle else answer

    def add_partitions(
        self,
        transactional_id: str,
        producer_id: int,
        epoch: int,
        partitions: frozenset[TopicPartition],
        version: int,
        later: Later | None = None,
    ) -> int | PendingReply:
        """Add partitions to a producer's transaction, and start it with the first one; return an error code."""
        runtime = self._load(transactional_id)
        now_ms = self._clock.wall_ms()

        def event(ticket: int) -> PartitionsAdded:
            return PartitionsAdded(ticket, transactional_id, producer_id, epoch, partitions, now_ms, version)

        answer: Answer | PendingReply = runtime.submit(event, None if later is None else partial(pass_code, later))
        return answer if isinstance(answer, PendingReply) else answer.code

    def verify_partitions(
        self,
        transactional_id: str,
        producer_id: int,
        epoch: int,
        partitions: frozenset[TopicPartition],
        later: Later | None = None,
    ) -> int | PendingReply:
        """Return the error for a producer that writes to these partitions within its transaction; NONE if it may."""
        partition = self._find_partition(transactional_id)
        machine = self._runtime.load(partition).machine
        code: int = machine.write_error(transactional_id, producer_id, epoch)
        if not code and machine.missing_partitions(transactional_id, partitions):
            code = ErrorCode.TRANSACTION_ABORTABLE
        if later is not None and self._commitment.hold(partition, lambda error: later(error or code)):
            return PendingReply(0)
        return code

    def complete(self, verification: Verification, on_done: Callable[[VerificationCodes, int], None]) -> None:
        """Verify a transaction's partitions for a producer of this broker, now or later."""

        def answer(result: int | KafkaError) -> None:
            on_done({}, result.code if isinstance(result, KafkaError) else result)

        about = (verification.transactional_id, verification.producer_id, verification.epoch, verification.partitions)
        try:
            result = self.add_or_verify_partitions(*about, verify_only=verification.verify_only, later=answer)
        except KafkaError as error:
            answer(error)
        else:
            if not isinstance(result, PendingReply):
                answer(result)

    def add_or_verify_partitions(
        self,
        transactional_id: str,
        producer_id: int,
        epoch: int,
        partitions: frozenset[TopicPartition],
        *,
        verify_only: bool,
        later: Later | None = None,
    ) -> int | PendingReply:
        """Verify that these partitions are in the transaction before a write (KIP-890); without `verify_only`, add them."""
        about = (transactional_id, producer_id, epoch, partitions)
        if verify_only:
            return self.verify_partitions(*about, later=later)
        return self.add_partitions(*about, version=V2, later=later)

    def end_transaction(
        self,
        transactional_id: str,
        producer_id: int,
        epoch: int,
        *,
        commit: bool,
        version: int,
        later: Later | None = None,
    ) -> Answer | PendingReply:
        """Commit or abort a transaction (EndTxn); the response has the producer id and epoch of the next one."""
        partition = self._find_partition(transactional_id)
        runtime = self._runtime.load(partition)
        now_ms = self._clock.wall_ms()

        def event(ticket: int) -> EndRequested:
            fresh = self._new_producer_id(runtime, transactional_id)
            return EndRequested(ticket, transactional_id, producer_id, epoch, commit, fresh, now_ms, version)

        return self._write_and_complete(partition, transactional_id, event, later)

    def find(self, transactional_id: str) -> Transaction | None:
        return self._load(transactional_id).machine.by_id.get(transactional_id)

    def find_fault(self, transactional_id: str) -> OutOfServiceError | None:
        """Return the damage that keeps a transactional id out of service until an operator repairs it."""
        return self._runtime.find_fault(transactional_id)

    def all(self) -> Iterator[Transaction]:
        """Yield every transactional id except those out of service. Raise KafkaError if a shard is being loaded."""
        for shard in self._runtime.stored_shards():
            yield from shard.by_id.values()

    def abort_timed_out(self) -> None:
        """Abort transactions that timed out, delete expired transactional ids, and complete prepared transactions."""
        for partition in self._runtime.stored_partitions():
            try:
                self._abort_timed_out(partition)
            except (OutOfServiceError, CoordinatorLoadInProgressError):
                pass  # reported already, or completed after the load
            except KafkaError as error:  # the other partitions are independent of this one
                log.error("the sweep of transactions failed partition=%s error=%s", partition.topic_partition, error)

    def _abort_timed_out(self, partition: Partition) -> None:
        expiration_ms = self._topics.config.transactional_id_expiration_ms
        runtime = self._runtime.load(partition)
        now_ms = self._clock.wall_ms()
        timed_out, expired = runtime.submit(lambda ticket: TimePassed(ticket, now_ms, expiration_ms))
        # Like every prepared transaction, those aborted here are completed by `_complete_prepared`.
        if timed_out:
            log.info("aborted transactions that timed out partition=%s count=%d", partition.topic_partition, timed_out)
        if expired:
            log.info("deleted expired transactional ids partition=%s count=%d", partition.topic_partition, expired)
        self._complete_prepared(partition, runtime)

    def load_elected(self, partition: Partition) -> None:
        """Load a partition that this broker leads now, and complete the transactions that the last coordinator left prepared."""
        self._runtime.load_elected(partition)

    def retire(self, partition: Partition) -> None:
        """Drop the transactional ids of a partition that another broker leads now."""
        self._deliveries.retire(partition)
        self._runtime.retire(partition)

    def is_loading(self, partition: Partition) -> bool:
        return self._runtime.is_loading(partition)

    def relocate(self, partition: Partition) -> None:
        """Use the log that the partition has now, in another directory."""
        self._runtime.relocate(partition)

    def on_loaded(self, partition: Partition, runtime: Runtime[Transactions]) -> None:
        self._complete_prepared(partition, runtime)

    def offsets_partition(self, group: str) -> TopicPartition:
        """Return the partition of `__consumer_offsets` that a transaction with offsets of this group writes to."""
        topic = self._context.ensure_topic(CONSUMER_OFFSETS)
        if not isinstance(topic, ClusterTopic):
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"{CONSUMER_OFFSETS} cannot be created")
        return find_partition_of_key(topic, group)

    def _find_partition(self, transactional_id: str) -> Partition:
        partition = self._runtime.find_partition(transactional_id)
        if partition is None:
            raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING, f"{TRANSACTION_STATE} does not exist yet")
        return partition

    def _load(self, transactional_id: str) -> Runtime[Transactions]:
        return self._runtime.load(self._find_partition(transactional_id))

    def _new_producer_id(self, runtime: Runtime[Transactions], transactional_id: str) -> int:
        """Allocate a producer id if the next event may need one; -1 otherwise."""
        return self._producer_ids.next() if runtime.machine.can_need_producer_id(transactional_id) else -1

    def _write_and_complete(
        self, partition: Partition, transactional_id: str, event: Callable[[int], Any], later: Later | None
    ) -> Answer | PendingReply:
        """Decide an event on the shard. If the transaction is prepared then, write its markers before the response is sent."""
        runtime = self._runtime.load(partition)

        def on_committed(answer: Answer | KafkaError) -> None:
            if not isinstance(answer, KafkaError) and prepared is not None:
                self._deliver(partition, prepared)
            if later is not None:
                later(answer)

        answer: Answer | PendingReply = runtime.submit(event, None if later is None else on_committed)
        prepared = runtime.machine.find_prepared(transactional_id)
        if not isinstance(answer, PendingReply) and prepared is not None:
            self._deliver(partition, prepared)
        return answer

    def _complete_prepared(self, partition: Partition, runtime: Runtime[Transactions]) -> None:
        """Write the markers of every transaction that is prepared by now, once that is committed."""
        unfinished = list(runtime.machine.find_unfinished())

        def on_committed(error: KafkaError | None) -> None:
            if error is not None:
                self._retry_later()
                return
            for transaction in unfinished:
                self._deliver(partition, transaction)

        if unfinished and not self._commitment.hold(partition, on_committed):
            on_committed(None)

    # The outcome is in the log, so each marker may be retried without limit. The response does not wait for the markers:
    # until all of them are written the next request of this id receives CONCURRENT_TRANSACTIONS.
    def _deliver(self, partition: Partition, transaction: Transaction) -> None:
        runtime, transactional_id = self._runtime.find_active(partition), transaction.transactional_id
        if runtime is not None and runtime.machine.by_id.get(transactional_id) == transaction:
            on_delivered = partial(self._complete, partition, transactional_id)
            self._deliveries.deliver(partition, transaction, partition.leader_epoch, on_delivered)

    def _complete(self, partition: Partition, transactional_id: str) -> None:
        """Record that every marker of a transaction is written."""
        runtime, now_ms = self._runtime.find_active(partition), self._clock.wall_ms()
        if runtime is None:
            return
        try:
            runtime.submit(lambda ticket: MarkersWritten(ticket, transactional_id, now_ms))
        except KafkaError as error:
            text = f"the end of the transaction of {transactional_id!r} could not be recorded: {error}"
            self._context.partitions.complaints.log(text)
            self._retry_later()
        else:
            self._deliveries.forget(partition, transactional_id)

    def _retry_later(self) -> None:
        if not self._retrying:
            self._retrying = True
            self._context.timers.schedule(self._clock.monotonic() + RETRY_SECONDS, self._retry)

    def _retry(self) -> None:
        self._retrying = False
        for partition, runtime in self._runtime.all_active():
            try:
                self._complete_prepared(partition, runtime)
            except Exception:
                log.exception("writing transaction markers failed, and is retried partition=%s", partition)
                self._retry_later()


def pass_code(later: Later, answer: Answer | KafkaError) -> None:
    later(answer if isinstance(answer, KafkaError) else answer.code)
