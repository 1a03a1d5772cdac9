"""The brain of an idempotent or transactional producer: its state, and what to ask the coordinators next.

    user's calls ─► state, waiting requests ─► TransactionSender ─► answers ─► state, the user's future

Pure: told what happened and when. Users' threads and the sender's call it; whoever calls holds `lock`, but for what
concerns single batches, which only the sender does.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ottla.client.backoff import ExponentialBackoff
from ottla.client.future import Future
from ottla.client.producer.open_transaction import OpenTransaction
from ottla.client.producer.producer_batch import ProducerBatch
from ottla.client.producer.producer_id_and_epoch import NO_PRODUCER, ProducerIdAndEpoch
from ottla.client.producer.producer_sequences import ProducerSequences
from ottla.client.producer.transaction_state import REMEDIES, State, check_call, check_transition
from ottla.client.producer.transactions.add_offsets_to_txn import AddOffsetsToTxn
from ottla.client.producer.transactions.add_partitions_to_txn import AddPartitionsToTxn
from ottla.client.producer.transactions.end_txn import EndTxn
from ottla.client.producer.transactions.find_coordinator import FindCoordinator
from ottla.client.producer.transactions.init_producer_id import InitProducerId
from ottla.client.producer.transactions.txn_offset_commit import TxnOffsetCommit
from ottla.client.producer.transactions.txn_request import TxnRequest, Verdict
from ottla.errors import (
    ApplicationRecoverableError,
    ErrorCode,
    IllegalStateError,
    InvalidProducerIdMappingError,
    KafkaError,
    TransactionAbortableError,
    TransactionAbortedError,
    error_for,
    name_of,
)
from ottla.model import Node, OffsetAndMetadata, TopicPartition

if TYPE_CHECKING:
    from ottla.client.consumer.coordinator.generation import ConsumerGroupMetadata

LOG = logging.getLogger(__name__)
FOREVER = float("inf")
OPEN = frozenset({State.IN_TRANSACTION, State.COMMITTING_TRANSACTION})
"""The states of a transaction that may still succeed."""
FATAL_CODES = frozenset(
    {
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        ErrorCode.PRODUCER_FENCED,
    }
)
"""Errors of a batch after which no other will be taken either."""
REMARKS: Mapping[int, str] = {
    ErrorCode.INVALID_TRANSACTION_TIMEOUT: "transaction.timeout.ms = {} is more than the brokers' "
    "transaction.max.timeout.ms; lower the one or raise the other",
}
"""What a person can do about an error."""
SEND_OFFSETS = "send_offsets_to_transaction"
SOON = 0.02
"""Seconds to wait when the last transaction is still being ended: it rarely takes longer."""


class TransactionManager:
    """State, identity, and requests that wait."""

    def __init__(
        self, *, name: str, backoff: ExponentialBackoff, transactional_id: str | None = None, timeout_ms: int = 60_000
    ) -> None:
        self.lock = threading.RLock()
        self.state = State.UNINITIALIZED
        self.error: Exception | None = None
        """What went wrong in ABORTABLE_ERROR and FATAL_ERROR."""
        self.transactional_id = transactional_id
        self.sequences = ProducerSequences(transactional=transactional_id is not None)
        self.v2 = False
        """Whether the brokers take partitions into a transaction by themselves (KIP-890)."""
        self.in_flight: TxnRequest | None = None
        self.coordinators: dict[tuple[int, str], Node] = {}
        self._name = name
        self._called = "the producer" if transactional_id is None else f"transactional.id {transactional_id!r}"
        self._backoff = backoff
        self._timeout_ms = timeout_ms
        self._requests: list[TxnRequest] = []
        self._awaited: tuple[str, Future[None]] | None = None
        """What the user has called and not yet heard the end of."""
        self._ending: Future[None] | None = None
        """What is to be told when the state is READY."""
        self._new_partitions: set[TopicPartition] = set()
        self._partitions: set[TopicPartition] = set()
        self._started = False
        """Whether there is anything in the transaction."""
        self._reached = False
        """Whether a broker may know of it."""

    # What users call

    def init_transactions(self) -> Future[None]:
        """Ask for an id; whoever had the `transactional.id` is fenced, its transaction aborted."""
        if self._resumes("init_transactions"):
            return self._pending("init_transactions")
        check_call("init_transactions", self.state, self.error)
        self._become(State.INITIALIZING)
        return self._await("init_transactions", self._ask_for_id(NO_PRODUCER))

    def begin_transaction(self) -> None:
        """From here on records belong to a transaction."""
        self._check("begin_transaction")
        self._become(State.IN_TRANSACTION)

    def check_send(self) -> None:
        """See that a record may be sent now."""
        self._check("send")

    def send_to(self, tp: TopicPartition) -> bool:
        """Something is queued for this partition, which takes part in the transaction; whether that is new."""
        if tp in self._partitions or tp in self._new_partitions:
            return False
        with self.lock:
            if self.state is not State.IN_TRANSACTION:
                return False
            (self._partitions if self.v2 else self._new_partitions).add(tp)
            self._started = True
            return True

    def send_offsets(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], group: ConsumerGroupMetadata
    ) -> Future[None]:
        """Offsets of a group that count when the transaction commits; called again, those of the first call."""
        if self._resumes(SEND_OFFSETS):
            return self._pending(SEND_OFFSETS)
        self._check(SEND_OFFSETS)
        assert self.transactional_id is not None
        self._started = True
        producer = self.sequences.producer
        if not self.v2:
            self._requests.append(AddOffsetsToTxn(self.transactional_id, producer, group.group_id))
        commit = TxnOffsetCommit(self.transactional_id, producer, group, offsets, v2=self.v2)
        self._requests.append(commit)
        return self._await(SEND_OFFSETS, commit.result)

    def commit_transaction(self) -> Future[None]:
        """Make it count, once everything is written."""
        if self._resumes("commit_transaction"):
            return self._pending("commit_transaction")
        self._check("commit_transaction")
        self._become(State.COMMITTING_TRANSACTION)
        return self._await("commit_transaction", self._end(commit=True))

    def abort_transaction(self) -> Future[None]:
        """Make it count for nothing."""
        if self._resumes("abort_transaction"):
            return self._pending("abort_transaction")
        if self._resumes(SEND_OFFSETS):
            self._awaited = None  # they are not to count any more
        if self.state is not State.ABORTABLE_ERROR:
            self._check("abort_transaction")
        self._awaited = None
        return self._await("abort_transaction", self._begin_abort())

    def hand_over(self) -> OpenTransaction:
        """Leave the transaction open, for another producer to end."""
        self._check("hand_over_transaction")
        assert self.transactional_id is not None
        if not self._reached:
            raise IllegalStateError("hand_over_transaction(): no broker knows of the transaction yet; flush() first")
        given = OpenTransaction(self.transactional_id, *self.sequences.producer, self.v2)
        error = IllegalStateError("the transaction was handed over to another producer; close this one")
        self.state, self.error = State.FATAL_ERROR, error
        return given

    def take_over(self, given: OpenTransaction) -> None:
        """Be where the producer was that handed its transaction over."""
        check_call("init_transactions", self.state, self.error)
        self.sequences.adopt(ProducerIdAndEpoch(given.producer_id, given.epoch))
        self.v2 = given.implicit
        self.state = State.IN_TRANSACTION
        self._started = self._reached = True

    def acknowledged(self, call: str) -> None:
        """The user has heard how the call ended."""
        if self._awaited is not None and self._awaited[0] == call:
            self._awaited = None

    # What the sender asks and tells

    @property
    def is_fatal(self) -> bool:
        return self.state is State.FATAL_ERROR

    @property
    def is_aborting(self) -> bool:
        """Whether records that were not sent yet need not be."""
        return self.state in (State.ABORTING_TRANSACTION, State.ABORTABLE_ERROR)

    @property
    def has_open_transaction(self) -> bool:
        return self.state in (
            State.IN_TRANSACTION,
            State.COMMITTING_TRANSACTION,
            State.ABORTING_TRANSACTION,
            State.ABORTABLE_ERROR,
        )

    @property
    def can_abort(self) -> bool:
        """Whether a user may call `abort_transaction`."""
        return self.state in (State.IN_TRANSACTION, State.ABORTABLE_ERROR)

    def abandon(self) -> None:
        """The producer is being closed in the middle of a transaction."""
        if self.state in (State.IN_TRANSACTION, State.ABORTABLE_ERROR):
            LOG.info("[%s] aborting the open transaction: the producer is being closed", self._name)
            self._begin_abort()

    def may_drain(self, batch: ProducerBatch) -> bool:
        """Whether the first batch of a queue may be sent: it is its turn, and its partition takes part."""
        if self.transactional_id is None:
            return self.sequences.may_drain(batch)
        with self.lock:
            begun = self.state in OPEN or batch.has_sequence
            if not begun or batch.tp not in self._partitions or not self.sequences.may_drain(batch):
                return False
            self._reached = self._reached or self.v2
            return True

    def take(self, batch: ProducerBatch) -> None:
        """A batch is about to be sent."""
        self.sequences.take(batch)

    def can_retry(self, batch: ProducerBatch, error: KafkaError, log_start_offset: int) -> bool:
        """Whether a refused batch may be sent again."""
        return not self.is_fatal and self.sequences.can_retry(batch, error, log_start_offset)

    def batch_failed(self, batch: ProducerBatch, error: Exception, *, certain: bool) -> None:
        """A batch is given up; `certain` tells that it is not in the log."""
        with self.lock:
            self.sequences.failed(batch, certain=certain)
            self.fail_transaction(error)

    def fail_transaction(self, error: Exception) -> None:
        """A record of the transaction is lost: all of it must be aborted."""
        with self.lock:
            if isinstance(error, KafkaError) and error.code in FATAL_CODES:
                self.fail(error)
            elif self.transactional_id is not None and self.state in OPEN:
                self._become_abortable(error)

    def resolve(self) -> None:
        """Before each turn: look after numbers whose batches were given up."""
        sequences = self.sequences
        sequences.resolve()
        if self.transactional_id is None:
            if sequences.bump_needed:
                sequences.bump()
            if not sequences.producer.is_known and not self.is_fatal and self.state is not State.INITIALIZING:
                self.state = State.INITIALIZING
                self._ask_for_id(NO_PRODUCER)

    def next_request(self, now: float, *, incomplete: Callable[[], bool]) -> tuple[TxnRequest | None, float]:
        """The request to send now, and the seconds until the next one may be due."""
        if self.in_flight is not None or self.is_fatal:
            return None, FOREVER
        self._add_new_partitions()
        request = min(self._requests, key=lambda request: request.PRIORITY, default=None)
        # Producing first: what is not written when the transaction ends is not part of it.
        if request is None or (isinstance(request, EndTxn) and incomplete()):
            return None, FOREVER
        if self.state is State.ABORTING_TRANSACTION and isinstance(request, EndTxn) and not self._reached:
            self._requests.remove(request)
            self.sequences.bump_needed = False
            self._become_ready()  # no broker has heard of the transaction
            return None, 0.0  # somebody may wait for just that
        if request.retry_at > now:
            return None, request.retry_at - now
        return request, 0.0

    def ensure_coordinator(self, request: TxnRequest) -> Node | None:
        """Whom to send it to; None while that is being found out."""
        assert request.coordinator is not None
        node = self.coordinators.get(request.coordinator)
        if node is None and not any(isinstance(each, FindCoordinator) for each in self._requests):
            self._requests.append(FindCoordinator(*request.coordinator))
        return node

    def forget_coordinator(self, coordinator: tuple[int, str] | None) -> None:
        """It is another broker now, or that one is gone."""
        if coordinator is not None:
            self.coordinators.pop(coordinator, None)

    def sent(self, request: TxnRequest) -> None:
        """It is on its way."""
        self.in_flight = request
        self._reached = self._reached or isinstance(request, TxnOffsetCommit)

    def answered(self, request: TxnRequest, answer: Any, now: float) -> None:
        """Its answer is here."""
        self._landed(request)
        failures = request.failures(answer)
        if failures:
            self._heed(request, *max(failures, key=lambda failure: request.verdict(failure[1])), now)
        elif request in self._requests:
            self._requests.remove(request)
            self._reached = self._reached or request.JOINS
            request.succeed(answer, self)
            if not isinstance(request, EndTxn | InitProducerId):
                request.result.set_result(None)

    def lost(self, request: TxnRequest, now: float) -> None:
        """The connection ended before the answer: it is asked again, which does no harm."""
        self._landed(request)
        self._heed(request, "", ErrorCode.NETWORK_EXCEPTION, now)

    def fail(self, error: Exception) -> None:
        """Nothing can be done any more with this producer."""
        if not self.is_fatal:
            self.state, self.error = State.FATAL_ERROR, error
            LOG.error("[%s] the producer cannot go on: %s", self._name, error)
        self._drop_requests(error)

    def close(self, error: Exception) -> None:
        """Nobody will ask any more."""
        self._drop_requests(error)

    # What requests have learnt

    def learn_coordinator(self, kind: int, key: str, node_id: int, host: str, port: int) -> None:
        self.coordinators[kind, key] = Node(node_id, host, port)

    def learn_producer(self, producer: ProducerIdAndEpoch) -> None:
        LOG.debug("[%s] producer id %d, epoch %d", self._name, *producer)
        self.sequences.bump_needed = False
        self.sequences.adopt(producer)
        self._become_ready()

    def learn_end(self, producer: ProducerIdAndEpoch) -> None:
        if producer.is_known:
            self.sequences.adopt(producer)
        if self.sequences.bump_needed:  # aborted, but its numbers have gaps: the next epoch begins at 0
            self._become(State.INITIALIZING)
            self._ask_for_id(self.sequences.producer)
        else:
            self._become_ready()

    def learn_partitions(self, partitions: Any) -> None:
        self._partitions |= partitions

    # Within

    def _check(self, call: str) -> None:
        """IllegalStateError for what may not be called now, the cause itself for what failed."""
        if self._awaited is not None and call != "send":
            raise IllegalStateError(
                f"{call}() cannot be called while {self._awaited[0]}() has not finished [{self.state.name}]; "
                f"call {self._awaited[0]}() again to go on waiting"
            )
        if self.is_fatal:
            raise self._as_raised(f"{call}() cannot be called", ApplicationRecoverableError)
        if self.state is State.ABORTABLE_ERROR and call != "begin_transaction":
            raise self._as_raised(f"{call}() cannot be called", TransactionAbortableError)
        check_call(call, self.state, self.error)

    def _as_raised(self, what: str, kind: type[KafkaError]) -> KafkaError:
        """The error that stands in the way of a call, as one of a kind that tells what to do."""
        error = self.error
        code = error.code if isinstance(error, KafkaError) else ErrorCode.UNKNOWN_SERVER_ERROR
        message = error.message if isinstance(error, KafkaError) else f"{type(error).__name__}: {error}"
        if isinstance(error, KafkaError) and isinstance(error, kind):
            kind = type(error)
        raised = kind(code, f"{what} [{self.state.name}]: {REMEDIES[self.state]}; the cause: {message}")
        raised.__cause__ = error
        return raised

    def _resumes(self, call: str) -> bool:
        return self._awaited is not None and self._awaited[0] == call

    def _pending(self, call: str) -> Future[None]:
        assert self._awaited is not None
        return self._awaited[1]

    def _await(self, call: str, result: Future[None]) -> Future[None]:
        self._awaited = (call, result)
        return result

    def _become(self, state: State) -> None:
        check_transition(self.state, state)
        LOG.debug("[%s] %s -> %s", self._name, self.state.name, state.name)
        self.state = state

    def _become_ready(self) -> None:
        if self.transactional_id is None:
            self.state = State.READY
        else:
            self._become(State.READY)
        self.error = None
        self._partitions.clear()
        self._new_partitions.clear()
        self._started = self._reached = False
        self.sequences.forget()
        if self._ending is not None:
            self._ending.set_result(None)
            self._ending = None

    def _become_abortable(self, error: Exception) -> None:
        self._become(State.ABORTABLE_ERROR)
        self.error = error
        if not self.v2:
            self.sequences.bump_needed = True
        self._drop_requests(self._as_raised("the transaction failed", TransactionAbortableError), aborting=True)

    def _begin_abort(self) -> Future[None]:
        self._become(State.ABORTING_TRANSACTION)
        error = TransactionAbortedError(ErrorCode.TRANSACTION_ABORTABLE, "the transaction is being aborted")
        self._drop_requests(error, aborting=True)
        self._new_partitions.clear()
        return self._end(commit=False)

    def _end(self, *, commit: bool) -> Future[None]:
        assert self.transactional_id is not None
        done: Future[None] = Future()
        self._ending = done
        if isinstance(self.error, InvalidProducerIdMappingError):
            # The coordinator has forgotten the id, and would not take the end of a transaction from it.
            self._become(State.INITIALIZING)
            self._ask_for_id(self.sequences.producer)
        elif self._started or not commit:
            self._requests.append(EndTxn(self.transactional_id, self.sequences.producer, commit=commit, v2=self.v2))
        else:
            self._become_ready()
        return done

    def _ask_for_id(self, producer: ProducerIdAndEpoch) -> Future[None]:
        self._ending = self._ending or Future()
        self._requests.append(InitProducerId(self.transactional_id, self._timeout_ms, producer))
        return self._ending

    def _add_new_partitions(self) -> None:
        if self._new_partitions and self.state in OPEN:
            assert self.transactional_id is not None
            added, self._new_partitions = self._new_partitions, set()
            self._requests.append(AddPartitionsToTxn(self.transactional_id, self.sequences.producer, added))

    def _heed(self, request: TxnRequest, what: str, code: int, now: float) -> None:
        """Do what an error asks for."""
        if request not in self._requests:
            return  # given up meanwhile
        about = f" ({what})" if what else ""
        remark = "" if code not in REMARKS else f": {REMARKS[code].format(self._timeout_ms)}"
        error = error_for(code, f"{request.NAME}{about} of {self._called}{remark}")
        verdict = request.verdict(code)
        if verdict <= Verdict.REDISCOVER:
            LOG.debug("[%s] %s: %s, trying again", self._name, request.NAME, name_of(code))
            if verdict is Verdict.REDISCOVER:
                self.forget_coordinator(request.coordinator)
            request.attempts += 1
            hasty = code == ErrorCode.CONCURRENT_TRANSACTIONS
            request.retry_at = now + (SOON if hasty else self._backoff.span(request.attempts))
        elif verdict is Verdict.ABORT and self.state in OPEN:
            self._requests.remove(request)
            self._become_abortable(error)
            request.result.set_exception(self._as_raised("the transaction failed", TransactionAbortableError))
        elif verdict is Verdict.ABORT and request.JOINS:
            self._requests.remove(request)  # it is being aborted already
        elif verdict is Verdict.FENCED:
            self.fail(fenced(self.transactional_id, code))
        else:
            self.fail(error)

    def _landed(self, request: TxnRequest) -> None:
        if self.in_flight is request:
            self.in_flight = None

    def _drop_requests(self, error: Exception, *, aborting: bool = False) -> None:
        """Fail everybody who waits. What is on the wire stays in flight: nothing may overtake it.

        To abort, it must be known whether there is a transaction: what may have begun it is asked until it is answered.
        """
        dropped, self._requests = self._requests, []
        ending, self._ending = self._ending, None
        for request in dropped:
            request.result.set_exception(error)
            if aborting and request.JOINS and (request.attempts or request is self.in_flight):
                self._requests.append(request)
        if ending is not None:
            ending.set_exception(error)


def fenced(transactional_id: str | None, code: int) -> KafkaError:
    """What a producer is told whose `transactional.id` belongs to another now."""
    return error_for(
        code,
        f"another producer has taken over transactional.id {transactional_id!r}, or the transaction took longer than "
        f"transaction.timeout.ms and was aborted; close this producer",
    )
