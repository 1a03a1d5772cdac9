"""What a producer with an id has been told and what it asks next: the state of its transaction, decided without a clock.

Pure. Users' calls, batches that failed and answers of coordinators come in as calls with the moment they happened;
`next_request` says what to ask, `Outcome` how a user's call ended, `status` where the producer is and what of that is worth a line in
the log, `contents` what the transaction has. Whoever calls has seen to it that nobody else does: `TransactionManager` holds the lock.

    init_transactions ─► InitProducerId ──────────────────────────────► READY
    begin_transaction ─► IN_TRANSACTION
      a record        ─► AddPartitionsToTxn, then its batch may be drained    (version 2: the broker sees to it, KIP-890)
      offsets         ─► AddOffsetsToTxn, then TxnOffsetCommit                (version 2: TxnOffsetCommit alone)
    commit, abort     ─► every batch has its outcome ─► EndTxn ────────► READY

What has to wait for what: a batch for the answer that took its partition in, or a broker could write what no coordinator
would ever commit or abort; the end for the outcome of every batch, or what is written later belongs to the next transaction;
and an abort for the answer to whatever may have begun the transaction at the coordinator (`TxnRequest.JOINS`): only then is it known
whether there is anything to be ended. One request is under way at a time, so that what one answer says (another epoch, another
coordinator) is known before the next is written.

A producer that is only idempotent goes through INITIALIZING and READY for its id, and does not see the rest.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ottla.client.producer.open_transaction import OpenTransaction
from ottla.client.producer.producer_batch import ProducerBatch
from ottla.client.producer.producer_id_and_epoch import NO_PRODUCER, ProducerIdAndEpoch
from ottla.client.producer.producer_sequences import ProducerSequences
from ottla.client.producer.transactions.outcome import Outcome
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
from ottla.client.producer.transactions.transaction_state import TransactionState, check_call
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

S = TransactionState
SEND_OFFSETS = "send_offsets_to_transaction"
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
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "this client's user may write to no topic: have a rule (ACL) for WRITE on the "
    f"topic made, {HOW_RULES_ARE_MADE}; brokers before Apache Kafka 2.8 want IDEMPOTENT_WRITE on the cluster as well",
}
"""What a person can do about an error."""


class TransactionMachine:
    """Takes calls and answers, and decides what is asked next."""

    def __init__(self, backoff: ExponentialBackoff, transactional_id: str | None, timeout_ms: int) -> None:
        self.status = TransactionStatus()
        self.contents = TransactionContents()
        self.transactional_id = transactional_id
        self.sequences = ProducerSequences(transactional=transactional_id is not None)
        self.requests = TxnRequests(backoff)
        self.v2 = False
        """Whether the brokers take partitions into a transaction by themselves (KIP-890)."""
        self._called = "the producer" if transactional_id is None else f"transactional.id {transactional_id!r}"
        self._timeout_ms = timeout_ms
        self._call = UnfinishedCall()
        self._ending: Outcome | None = None
        """What is to be told when the state is READY."""

    # What users call

    def init_transactions(self) -> Outcome:
        """Ask for an id; whoever had the `transactional.id` is fenced, its transaction aborted."""
        if (under_way := self._call.outcome_of("init_transactions")) is not None:
            return under_way
        check_call("init_transactions", self.status.state, self.status.error)
        self.status.become(S.INITIALIZING)
        return self._call.begin("init_transactions", self._ask_for_id(NO_PRODUCER))

    def begin_transaction(self) -> None:
        """From here on records belong to a transaction."""
        self._check("begin_transaction")
        self.status.become(S.IN_TRANSACTION)

    def check_send(self) -> None:
        """See that a record may be sent now."""
        self._check("send")

    def send_to(self, tp: TopicPartition) -> bool:
        """Something is queued for this partition, which takes part in the transaction; whether that is new."""
        if tp in self.contents.taking_part or self.status.state is not S.IN_TRANSACTION:
            return False
        self.contents.add(tp, implicit=self.v2)
        return True

    def send_offsets(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], group: ConsumerGroupMetadata
    ) -> Outcome:
        """Offsets of a group that count when the transaction commits; called again, those of the first call."""
        if (under_way := self._call.outcome_of(SEND_OFFSETS)) is not None:
            return under_way
        self._check(SEND_OFFSETS)
        assert self.transactional_id is not None
        self.contents.started = True
        producer = self.sequences.producer
        if not self.v2:
            self.requests.add(AddOffsetsToTxn(self.transactional_id, producer, group.group_id))
        commit = TxnOffsetCommit(self.transactional_id, producer, group, offsets, v2=self.v2)
        self.requests.add(commit)
        return self._call.begin(SEND_OFFSETS, commit.outcome)

    def commit_transaction(self) -> Outcome:
        """Make it count, once everything is written."""
        if (under_way := self._call.outcome_of("commit_transaction")) is not None:
            return under_way
        self._check("commit_transaction")
        self.status.become(S.COMMITTING_TRANSACTION)
        return self._call.begin("commit_transaction", self._end(commit=True))

    def abort_transaction(self) -> Outcome:
        """Make it count for nothing."""
        if (under_way := self._call.outcome_of("abort_transaction")) is not None:
            return under_way
        self.acknowledged(SEND_OFFSETS)  # offsets are not to count any more
        if self.status.state is not S.ABORTABLE_ERROR:
            self._check("abort_transaction")
        self._call.clear()
        return self._call.begin("abort_transaction", self._begin_abort())

    def hand_over(self) -> OpenTransaction:
        """Leave the transaction open, for another producer to end."""
        self._check("hand_over_transaction")
        assert self.transactional_id is not None
        if not self.contents.reached:
            raise IllegalStateError("hand_over_transaction(): no broker knows of the transaction yet; flush() first")
        given = OpenTransaction(self.transactional_id, *self.sequences.producer, self.v2)
        self.status.error = IllegalStateError("the transaction was handed over to another producer; close this one")
        self.status.enter(S.FATAL_ERROR)
        return given

    def take_over(self, given: OpenTransaction) -> None:
        """Be where the producer was that handed its transaction over."""
        check_call("init_transactions", self.status.state, self.status.error)
        self.sequences.adopt(ProducerIdAndEpoch(given.producer_id, given.epoch))
        self.v2 = given.implicit
        self.contents.started = self.contents.reached = True
        self.status.enter(S.IN_TRANSACTION)

    @property
    def unfinished_call(self) -> str | None:
        """The name of the user's call whose end was not returned to the user, such as `commit_transaction`."""
        return self._call.name

    def acknowledged(self, call: str) -> None:
        """The user has heard how the call ended."""
        self._call.acknowledge(call)

    # What the sender asks and tells

    def abandon(self) -> None:
        """The producer is being closed in the middle of a transaction."""
        if self.status.can_abort:
            self.status.tell(logging.INFO, "aborting the open transaction: the producer is being closed")
            self._begin_abort()

    def may_drain(self, batch: ProducerBatch) -> bool:
        """True if the first batch of a queue may be sent: it is its turn, and its partition takes part.

        The partition is added here if an exception in the user's thread came between the record and `send_to`.
        """
        self.send_to(batch.tp)
        begun = self.status.is_open or batch.has_sequence
        if not begun or batch.tp not in self.contents.partitions or not self.sequences.may_drain(batch):
            return False
        self.contents.reached = self.contents.reached or self.v2
        return True

    def fail_transaction(self, error: Exception) -> None:
        """A record of the transaction is lost: all of it must be aborted."""
        if isinstance(error, KafkaError) and error.code in FATAL_CODES:
            self.fail(error)
        elif self.status.is_open:
            self._become_abortable(error)

    def resolve(self) -> None:
        """Before each turn: look after numbers whose batches were given up."""
        sequences = self.sequences
        sequences.resolve()
        if self.transactional_id is None:
            if sequences.bump_needed:
                sequences.bump()
            if not sequences.producer.is_known and not self.status.is_fatal and self.status.state is not S.INITIALIZING:
                self.status.enter(S.INITIALIZING)
                self._ask_for_id(NO_PRODUCER)

    def next_request(self, now: float, *, incomplete: Callable[[], bool]) -> tuple[TxnRequest | None, float]:
        """The request to send now, and the seconds until the next one may be due."""
        if self.requests.in_flight is not None or self.status.is_fatal:
            return None, FOREVER
        self._add_new_partitions()
        request = self.requests.first()
        # Producing first: what is not written when the transaction ends is not part of it.
        if request is None or (isinstance(request, EndTxn) and incomplete()):
            return None, FOREVER
        if self.status.state is S.ABORTING_TRANSACTION and isinstance(request, EndTxn) and not self.contents.reached:
            self.requests.remove(request)
            self.sequences.bump_needed = False
            self._become_ready()  # no broker has heard of the transaction
            return None, 0.0  # somebody may wait for just that
        if request.retry_at > now:
            return None, request.retry_at - now
        return request, 0.0

    def sent(self, request: TxnRequest) -> None:
        """It is on its way."""
        self.requests.in_flight = request
        self.contents.reached = self.contents.reached or isinstance(request, TxnOffsetCommit)

    def answered(self, request: TxnRequest, answer: Any, now: float, *, v2: bool) -> None:
        """Its answer is here, from a broker that speaks version 2 of transactions or does not."""
        self.requests.landed(request)
        if isinstance(request, InitProducerId | EndTxn):
            self.v2 = v2
        failures = request.failures(answer)
        if failures:
            self._heed(request, *max(failures, key=lambda failure: request.verdict(failure[1])), now)
        elif request in self.requests:
            self.requests.remove(request)
            self.contents.reached = self.contents.reached or request.JOINS
            request.succeed(answer, self)
            request.outcome.settle()

    def lost(self, request: TxnRequest, now: float) -> None:
        """The connection ended before the answer: it is asked again, which does no harm."""
        self.requests.landed(request)
        self._heed(request, "", ErrorCode.NETWORK_EXCEPTION, now)

    def fail(self, error: Exception) -> None:
        """Nothing can be done any more with this producer."""
        self.status.fail(error)
        self.drop_requests(error)

    def drop_requests(self, error: Exception, *, aborting: bool = False) -> None:
        """Fail everybody who waits, as of `TxnRequests.drop`."""
        ending, self._ending = self._ending, None
        self.requests.drop(error, aborting=aborting)
        if ending is not None:
            ending.settle(error)

    def check(self) -> None:
        """What holds at any time."""
        self.status.check()
        self.contents.check()
        assert self.status.state not in (S.UNINITIALIZED, S.READY) or not (
            self.contents.started or self.contents.reached
        )
        assert not self.status.is_open or not self.contents.new or not self.v2
        assert self._ending is None or not self._ending.done

    # What requests have learnt

    def learn_coordinator(self, kind: int, key: str, node_id: int, host: str, port: int) -> None:
        self.requests.coordinators[kind, key] = Node(node_id, host, port)

    def learn_producer(self, producer: ProducerIdAndEpoch) -> None:
        self.status.tell(logging.DEBUG, f"producer id {producer.producer_id}, epoch {producer.epoch}")
        self.sequences.bump_needed = False
        self.sequences.adopt(producer)
        self._become_ready()

    def learn_end(self, producer: ProducerIdAndEpoch) -> None:
        if producer.is_known:
            self.sequences.adopt(producer)
        if self.sequences.bump_needed:  # aborted, but its numbers have gaps: the next epoch begins at 0
            self.status.become(S.INITIALIZING)
            self._ask_for_id(self.sequences.producer)
        else:
            self._become_ready()

    def learn_partitions(self, partitions: Any) -> None:
        self.contents.partitions |= partitions

    # Within

    def _check(self, call: str) -> None:
        """See that a call may be made, as `TransactionStatus.check_call`; not while another has not finished, but for records."""
        if call != "send":
            self._call.check_none(call, self.status.state)
        self.status.check_call(call)

    def _become_ready(self) -> None:
        if self.transactional_id is None:
            self.status.enter(S.READY)
        else:
            self.status.become(S.READY)
        self.status.error = None
        self.contents.clear()
        self.sequences.clear_unresolved()
        if self._ending is not None:
            self._ending.settle()
            self._ending = None

    def _become_abortable(self, error: Exception) -> None:
        # In this order, because an exception in a user's thread may end it: see `TransactionManager`.
        if not self.v2:
            self.sequences.bump_needed = True
        self.status.error = error
        self.status.become(S.ABORTABLE_ERROR)
        self.drop_requests(self.status.lost_transaction(), aborting=True)

    def _begin_abort(self) -> Outcome:
        self.status.become(S.ABORTING_TRANSACTION)
        error = TransactionAbortedError(ErrorCode.TRANSACTION_ABORTABLE, "the transaction is being aborted")
        self.drop_requests(error, aborting=True)
        return self._end(commit=False)

    def _end(self, *, commit: bool) -> Outcome:
        assert self.transactional_id is not None
        done = self._ending = Outcome()
        if isinstance(self.status.error, InvalidProducerIdMappingError):
            # The coordinator has forgotten the id, and would not take the end of a transaction from it.
            self.status.become(S.INITIALIZING)
            self._ask_for_id(self.sequences.producer)
        elif self.contents.started or self.contents.reached or not commit:
            self.requests.add(EndTxn(self.transactional_id, self.sequences.producer, commit=commit, v2=self.v2))
        else:
            self._become_ready()
        return done

    def _ask_for_id(self, producer: ProducerIdAndEpoch) -> Outcome:
        self._ending = self._ending or Outcome()
        self.requests.add(InitProducerId(self.transactional_id, self._timeout_ms, producer))
        return self._ending

    def _add_new_partitions(self) -> None:
        if self.contents.new and self.status.is_open:
            assert self.transactional_id is not None
            new = self.contents.take_new()
            self.requests.add(AddPartitionsToTxn(self.transactional_id, self.sequences.producer, new))

    def _heed(self, request: TxnRequest, what: str, code: int, now: float) -> None:
        """Do what an error asks for."""
        if request not in self.requests:
            return  # given up meanwhile
        about = f" ({what})" if what else ""
        remark = "" if code not in REMARKS else f": {REMARKS[code].format(self._timeout_ms)}"
        error = error_for(code, f"{request.NAME}{about} of {self._called}{remark}")
        verdict = request.verdict(code)
        if verdict <= Verdict.REDISCOVER:
            self.status.tell(logging.DEBUG, f"{request.NAME}: {name_of(code)}, trying again")
            self.requests.postpone(request, verdict, code, now)
        elif verdict is Verdict.ABORT and self.status.is_open:
            self.requests.remove(request)
            self._become_abortable(error)
            request.outcome.settle(self.status.lost_transaction())
        elif verdict is Verdict.ABORT and request.JOINS:
            self.requests.remove(request)  # it is being aborted already
        elif verdict is Verdict.FENCED:
            self.fail(fenced(self.transactional_id, code))
        else:
            self.fail(error)


def fenced(transactional_id: str | None, code: int) -> KafkaError:
    """What a producer is told whose `transactional.id` belongs to another now."""
    return error_for(
        code,
        f"another producer has taken over transactional.id {transactional_id!r}, or the transaction took longer than "
        f"transaction.timeout.ms and was aborted; close this producer",
    )
