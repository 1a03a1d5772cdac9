"""The state machine of a transactional or idempotent producer. Pure, without a clock.

Users' calls, failed batches and coordinator responses are calls with the time as an argument. `next_request` returns
the next request, an `CallOutcome` the result of a user's call, `status` the state and its log lines, `contents` the
contents of the transaction. The caller guarantees exclusive access: `TransactionManager` holds the lock. Corresponds to
Java's TransactionManager.

    init_transactions ─► InitProducerId ──────────────────────────────► READY
    begin_transaction ─► IN_TRANSACTION
      a record        ─► AddPartitionsToTxn, then its batch may be drained    (version 2: done by the broker, KIP-890)
      offsets         ─► AddOffsetsToTxn, then TxnOffsetCommit                (version 2: TxnOffsetCommit alone)
    commit, abort     ─► every batch has its result ─► EndTxn ─────────► READY

A batch waits for the response that added its partition; otherwise a broker could write records that no coordinator
commits or aborts. EndTxn waits for the result of every batch; otherwise later writes would belong to the next
transaction. An abort waits for the response to every request that may have started the transaction at the coordinator
(`TxnRequest.JOINS`); only then is it known whether there is anything to end. One request is in flight at a time, so
that a new epoch or coordinator in its response is known before the next is created.

An idempotent producer without a transactional id uses only INITIALIZING and READY, to get its producer id.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from uuid import UUID

from ottla.client.producer.open_transaction import OpenTransaction
from ottla.client.producer.producer_batch import ProducerBatch
from ottla.client.producer.producer_id_and_epoch import NO_PRODUCER, ProducerIdAndEpoch
from ottla.client.producer.producer_sequences import ProducerSequences
from ottla.client.producer.transactions.call_outcome import CallOutcome
from ottla.client.producer.transactions.requests import (
    AddOffsetsToTxn,
    AddPartitionsToTxn,
    EndTxn,
    InitProducerId,
    TxnOffsetCommit,
    TxnRequest,
    Verdict,
)
from ottla.client.producer.transactions.transaction_contents import TransactionContents
from ottla.client.producer.transactions.transaction_state import ProducerTransactionState, check_call
from ottla.client.producer.transactions.transaction_status import TransactionStatus
from ottla.client.producer.transactions.txn_requests import TxnRequests
from ottla.client.producer.transactions.unfinished_call import UnfinishedCall
from ottla.client.runtime.backoff import ExponentialBackoff
from ottla.errors import (
    HOW_RULES_ARE_MADE,
    ErrorCode,
    IllegalStateError,
    InvalidProducerIdMappingError,
    KafkaError,
    TransactionAbortedError,
    error_for,
    name_of,
)
from ottla.model import FOREVER, Node, OffsetAndMetadata, TopicPartition

if TYPE_CHECKING:
    from ottla.client.consumer.coordinator.generation import ConsumerGroupMetadata

S = ProducerTransactionState
SEND_OFFSETS = "send_offsets_to_transaction"
NO_IDS: Mapping[str, UUID] = MappingProxyType({})
FATAL_CODES = frozenset(
    {
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        ErrorCode.PRODUCER_FENCED,
    }
)
"""Errors of a batch after which no further batch would be accepted."""
REMARKS: Mapping[int, str] = {
    ErrorCode.INVALID_TRANSACTION_TIMEOUT: "transaction.timeout.ms = {} exceeds the brokers' "
    "transaction.max.timeout.ms; lower it or raise the brokers' limit",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "this client's user may write to no topic: add an ACL for WRITE on the "
    f"topic, {HOW_RULES_ARE_MADE}; brokers before Apache Kafka 2.8 require IDEMPOTENT_WRITE on the cluster as well",
}
"""Remedies for errors."""


class TransactionMachine:
    """Handles calls and responses, and decides on the next request."""

    def __init__(self, backoff: ExponentialBackoff, transactional_id: str | None, timeout_ms: int) -> None:
        self.status = TransactionStatus()
        self.contents = TransactionContents()
        self.transactional_id = transactional_id
        self.sequences = ProducerSequences(transactional=transactional_id is not None)
        self.requests = TxnRequests(backoff)
        self.v2 = False
        """True if brokers add partitions to a transaction by themselves (KIP-890)."""
        self._called = "the producer" if transactional_id is None else f"transactional.id {transactional_id!r}"
        self._timeout_ms = timeout_ms
        self._call = UnfinishedCall()
        self._ending: CallOutcome | None = None
        """Set when the state becomes READY."""

    # Called by users.

    def init_transactions(self) -> CallOutcome:
        """Request a producer id. The previous producer with this `transactional.id` is fenced, its transaction aborted."""
        if (under_way := self._call.find_outcome("init_transactions")) is not None:
            return under_way
        check_call("init_transactions", self.status.state, self.status.error)
        self.status.transition_to(S.INITIALIZING)
        return self._call.start_call("init_transactions", self._request_producer_id(NO_PRODUCER))

    def begin_transaction(self) -> None:
        """Begin a transaction; the records from now on belong to it."""
        self._check_call("begin_transaction")
        self.status.transition_to(S.IN_TRANSACTION)

    def check_send(self) -> None:
        """Check that a record may be sent now."""
        self._check_call("send")

    def add_partition(self, tp: TopicPartition) -> bool:
        """Add a partition to the transaction for a queued record. Return True if it is new."""
        if tp in self.contents.taking_part or self.status.state is not S.IN_TRANSACTION:
            return False
        self.contents.add_partition(tp, implicit=self.v2)
        return True

    def send_offsets(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
        group: ConsumerGroupMetadata,
        topic_ids: Mapping[str, UUID] = NO_IDS,
    ) -> CallOutcome:
        """Add a group's offsets to the transaction. A repeated call waits for the offsets of the first.

        `topic_ids` has the ids of the topics that are known.
        """
        if (under_way := self._call.find_outcome(SEND_OFFSETS)) is not None:
            return under_way
        self._check_call(SEND_OFFSETS)
        assert self.transactional_id is not None
        self.contents.started = True
        producer = self.sequences.producer
        if not self.v2:
            self.requests.add(AddOffsetsToTxn(self.transactional_id, producer, group.group_id))
        commit = TxnOffsetCommit(self.transactional_id, producer, group, offsets, topic_ids, v2=self.v2)
        self.requests.add(commit)
        return self._call.start_call(SEND_OFFSETS, commit.outcome)

    def commit_transaction(self) -> CallOutcome:
        """Commit the transaction, once everything is written."""
        if (under_way := self._call.find_outcome("commit_transaction")) is not None:
            return under_way
        self._check_call("commit_transaction")
        self.status.transition_to(S.COMMITTING_TRANSACTION)
        return self._call.start_call("commit_transaction", self._end_transaction(commit=True))

    def abort_transaction(self) -> CallOutcome:
        """Abort the transaction."""
        if (under_way := self._call.find_outcome("abort_transaction")) is not None:
            return under_way
        self.acknowledge_call(SEND_OFFSETS)  # the offsets are aborted, too
        if self.status.state is not S.ABORTABLE_ERROR:
            self._check_call("abort_transaction")
        self._call.clear()
        return self._call.start_call("abort_transaction", self._begin_abort())

    def hand_over_transaction(self) -> OpenTransaction:
        """Leave the transaction open, for another producer to end."""
        self._check_call("hand_over_transaction")
        assert self.transactional_id is not None
        if not self.contents.reached:
            raise IllegalStateError("hand_over_transaction(): no broker knows of the transaction yet; flush() first")
        given = OpenTransaction(self.transactional_id, *self.sequences.producer, self.v2)
        self.status.error = IllegalStateError("the transaction was passed to another producer; close this one")
        self.status.enter_state(S.FATAL_ERROR)
        return given

    def take_over_transaction(self, given: OpenTransaction) -> None:
        """Continue the transaction of another producer."""
        check_call("init_transactions", self.status.state, self.status.error)
        self.sequences.set_producer(ProducerIdAndEpoch(given.producer_id, given.epoch))
        self.v2 = given.implicit
        self.contents.started = self.contents.reached = True
        self.status.enter_state(S.IN_TRANSACTION)

    @property
    def unfinished_call(self) -> str | None:
        """The name of the user's call with a result that was not returned yet, such as `commit_transaction`."""
        return self._call.name

    def acknowledge_call(self, call: str) -> None:
        """Record that the result of a call was returned to the user."""
        self._call.acknowledge(call)

    # Called by the sender.

    def abandon_transaction(self) -> None:
        """Abort an open transaction at close."""
        if self.status.can_abort:
            self.status.add_log_line(logging.INFO, "aborting the open transaction: the producer is closing")
            self._begin_abort()

    def can_drain(self, batch: ProducerBatch) -> bool:
        """Return True if the first batch of a queue may be sent: it is next, and its partition was added.

        Adds the partition if an exception in the user's thread prevented `add_partition`.
        """
        self.add_partition(batch.tp)
        can_send = self.status.is_open or batch.has_sequence
        if not can_send or batch.tp not in self.contents.partitions or not self.sequences.can_drain(batch):
            return False
        self.contents.reached = self.contents.reached or self.v2
        return True

    def fail_transaction(self, error: Exception) -> None:
        """Record that a record of the transaction has failed: the transaction must be aborted."""
        if isinstance(error, KafkaError) and error.code in FATAL_CODES:
            self.fail(error)
        elif self.status.is_open:
            self._become_abortable(error)

    def resolve_failed_batches(self) -> None:
        """Resolve sequence numbers of failed batches; called before each turn."""
        sequences = self.sequences
        sequences.resolve_failed_batches()
        if self.transactional_id is None:
            if sequences.bump_needed:
                sequences.bump_epoch()
            if not sequences.producer.is_known and not self.status.is_fatal and self.status.state is not S.INITIALIZING:
                self.status.enter_state(S.INITIALIZING)
                self._request_producer_id(NO_PRODUCER)

    def next_request(self, now: float, *, incomplete: Callable[[], bool]) -> tuple[TxnRequest | None, float]:
        """Return the request to send now, and the seconds until the next one may be due."""
        if self.requests.in_flight is not None or self.status.is_fatal:
            return None, FOREVER
        self._add_new_partitions()
        request = self.requests.first_request()
        # Records first: what is written after the end does not belong to the transaction.
        if request is None or (isinstance(request, EndTxn) and incomplete()):
            return None, FOREVER
        if self.status.state is S.ABORTING_TRANSACTION and isinstance(request, EndTxn) and not self.contents.reached:
            self.requests.remove(request)
            self.sequences.bump_needed = False
            self._become_ready()  # no broker knows of the transaction
            return None, 0.0  # a caller may be waiting for this
        if request.retry_at > now:
            return None, request.retry_at - now
        return request, 0.0

    def record_sent(self, request: TxnRequest) -> None:
        """Record that a request is in flight."""
        self.requests.in_flight = request
        self.contents.reached = self.contents.reached or isinstance(request, TxnOffsetCommit)

    def handle_response(self, request: TxnRequest, answer: Any, now: float, *, v2: bool) -> None:
        """Handle a response; `v2` is True if the broker supports version 2 of transactions."""
        self.requests.clear_in_flight(request)
        if isinstance(request, InitProducerId | EndTxn):
            self.v2 = v2
        failures = request.find_failures(answer)
        if failures:
            self._handle_error(request, *max(failures, key=lambda failure: request.classify_error(failure[1])), now)
        elif request in self.requests:
            self.requests.remove(request)
            self.contents.reached = self.contents.reached or request.JOINS
            request.handle_success(answer, self)
            request.outcome.set_result()

    def handle_disconnect(self, request: TxnRequest, now: float) -> None:
        """Handle a lost connection: the request is repeated, which is safe."""
        self.requests.clear_in_flight(request)
        self._handle_error(request, "", ErrorCode.NETWORK_EXCEPTION, now)

    def fail(self, error: Exception) -> None:
        """Enter the fatal error state."""
        self.status.fail(error)
        self.drop_requests(error)

    def drop_requests(self, error: Exception, *, aborting: bool = False) -> None:
        """Fail all waiting callers, as `TxnRequests.drop_requests` does."""
        ending, self._ending = self._ending, None
        self.requests.drop_requests(error, aborting=aborting)
        if ending is not None:
            ending.set_result(error)

    def check(self) -> None:
        """Assert the invariants."""
        self.status.check()
        self.contents.check()
        assert self.status.state not in (S.UNINITIALIZED, S.READY) or not (
            self.contents.started or self.contents.reached
        )
        assert not self.status.is_open or not self.contents.new or not self.v2
        assert self._ending is None or not self._ending.done

    # Called by successful requests.

    def set_coordinator(self, kind: int, key: str, node_id: int, host: str, port: int) -> None:
        self.requests.coordinators[kind, key] = Node(node_id, host, port)

    def set_producer(self, producer: ProducerIdAndEpoch) -> None:
        self.status.add_log_line(logging.DEBUG, f"producer id {producer.producer_id}, epoch {producer.epoch}")
        self.sequences.bump_needed = False
        self.sequences.set_producer(producer)
        self._become_ready()

    def handle_end(self, producer: ProducerIdAndEpoch) -> None:
        if producer.is_known:
            self.sequences.set_producer(producer)
        if self.sequences.bump_needed:  # aborted with gaps in the sequence numbers: the next epoch starts at 0
            self.status.transition_to(S.INITIALIZING)
            self._request_producer_id(self.sequences.producer)
        else:
            self._become_ready()

    def confirm_partitions(self, partitions: Any) -> None:
        self.contents.partitions |= partitions

    # Within

    def _check_call(self, call: str) -> None:
        """Check that a call is allowed, and that no other call except `send` is unfinished."""
        if call != "send":
            self._call.check_none(call, self.status.state)
        self.status.check_call(call)

    def _become_ready(self) -> None:
        if self.transactional_id is None:
            self.status.enter_state(S.READY)
        else:
            self.status.transition_to(S.READY)
        self.status.error = None
        self.contents.clear()
        self.sequences.clear_unresolved()
        if self._ending is not None:
            self._ending.set_result()
            self._ending = None

    def _become_abortable(self, error: Exception) -> None:
        # In this order, because an exception in a user's thread may end it: see `TransactionManager`.
        if not self.v2:
            self.sequences.bump_needed = True
        self.status.error = error
        self.status.transition_to(S.ABORTABLE_ERROR)
        self.drop_requests(self.status.lost_transaction_error(), aborting=True)

    def _begin_abort(self) -> CallOutcome:
        self.status.transition_to(S.ABORTING_TRANSACTION)
        error = TransactionAbortedError(ErrorCode.TRANSACTION_ABORTABLE, "the transaction is being aborted")
        self.drop_requests(error, aborting=True)
        return self._end_transaction(commit=False)

    def _end_transaction(self, *, commit: bool) -> CallOutcome:
        assert self.transactional_id is not None
        done = self._ending = CallOutcome()
        if isinstance(self.status.error, InvalidProducerIdMappingError):
            # The coordinator does not know the producer id any more, and would reject EndTxn from it.
            self.status.transition_to(S.INITIALIZING)
            self._request_producer_id(self.sequences.producer)
        elif self.contents.started or self.contents.reached or not commit:
            self.requests.add(EndTxn(self.transactional_id, self.sequences.producer, commit=commit, v2=self.v2))
        else:
            self._become_ready()
        return done

    def _request_producer_id(self, producer: ProducerIdAndEpoch) -> CallOutcome:
        self._ending = self._ending or CallOutcome()
        self.requests.add(InitProducerId(self.transactional_id, self._timeout_ms, producer))
        return self._ending

    def _add_new_partitions(self) -> None:
        if self.contents.new and self.status.is_open:
            assert self.transactional_id is not None
            new = self.contents.take_new_partitions()
            self.requests.add(AddPartitionsToTxn(self.transactional_id, self.sequences.producer, new))

    def _handle_error(self, request: TxnRequest, subject: str, code: int, now: float) -> None:
        """React to an error as its verdict requires."""
        if request not in self.requests:
            return  # dropped meanwhile
        about = f" ({subject})" if subject else ""
        remark = "" if code not in REMARKS else f": {REMARKS[code].format(self._timeout_ms)}"
        error = error_for(code, f"{request.NAME}{about} of {self._called}{remark}")
        verdict = request.classify_error(code)
        if verdict <= Verdict.REDISCOVER:
            self.status.add_log_line(logging.DEBUG, f"{request.NAME} failed: {name_of(code)}; it is retried")
            self.requests.postpone_request(request, verdict, code, now)
        elif verdict is Verdict.ABORT and self.status.is_open:
            self.requests.remove(request)
            self._become_abortable(error)
            request.outcome.set_result(self.status.lost_transaction_error())
        elif verdict is Verdict.ABORT and request.JOINS:
            self.requests.remove(request)  # it is being aborted already
        elif verdict is Verdict.FENCED:
            self.fail(fenced_error(self.transactional_id, code))
        else:
            self.fail(error)


def fenced_error(transactional_id: str | None, code: int) -> KafkaError:
    """Return the error of a producer that was fenced."""
    return error_for(
        code,
        f"another producer uses transactional.id {transactional_id!r}, or the transaction took longer than "
        f"transaction.timeout.ms and was aborted; close this producer",
    )
