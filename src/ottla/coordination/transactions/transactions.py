"""The state machine of one partition of `__transaction_state`: its transactional ids.

It decides and replays; time and random ids come with the events. Its caller writes the markers of the transactions that `find_unfinished`
returns, and confirms them with `MarkersWritten`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from msgspec.structs import replace

from ottla.coordination.machine import Decision, Reply
from ottla.coordination.transactions.ending import complete_transaction, prepare_end
from ottla.coordination.transactions.events import (
    Answer,
    EndRequested,
    Event,
    MarkersWritten,
    PartitionsAdded,
    ProducerRequested,
    TimePassed,
)
from ottla.coordination.transactions.records import TransactionRecord
from ottla.coordination.transactions.starting import fence_transaction, new_transaction, take_over_id
from ottla.coordination.transactions.state import TransactionState
from ottla.coordination.transactions.transaction import NO_PRODUCER, Transaction, can_follow
from ottla.errors import ErrorCode
from ottla.model import TopicPartition

Outcome = Decision[TransactionRecord]


class Transactions:
    def __init__(self, now: float) -> None:
        self._known_at = now
        self.by_id: dict[str, Transaction] = {}
        self._prepared: dict[str, None] = {}

    def decide(self, event: Event, now: float) -> Outcome:
        match event:
            case ProducerRequested():
                return self._decide_producer(event)
            case PartitionsAdded():
                return self._decide_partitions(event, now)
            case EndRequested():
                return self._decide_end(event)
            case MarkersWritten():
                return self._decide_completion(event)
            case TimePassed():
                return self._decide_sweep(event, now)

    def replay(self, record: TransactionRecord) -> None:
        """Replay a record; the last one of an id is its state."""
        self._prepared.pop(record.transactional_id, None)
        if record.transaction is None:
            self.by_id.pop(record.transactional_id, None)
            return
        self.by_id[record.transactional_id] = record.transaction
        if record.transaction.state.is_prepared:
            self._prepared[record.transactional_id] = None

    def check(self) -> None:
        for name, transaction in self.by_id.items():
            assert transaction.transactional_id == name
            assert transaction.state.is_prepared == (name in self._prepared)
            transaction.check()
        assert self._prepared.keys() <= self.by_id.keys()

    def find_unfinished(self) -> Iterator[Transaction]:
        """Return the transactions with a decided outcome and missing markers."""
        return iter([self.by_id[name] for name in self._prepared])

    def find_prepared(self, transactional_id: str) -> Transaction | None:
        """Return the transaction of an id if its outcome is decided and markers are missing."""
        return self.by_id[transactional_id] if transactional_id in self._prepared else None

    def can_need_producer_id(self, transactional_id: str) -> bool:
        """Return True if the next event of the id may need a new producer id."""
        transaction = self.by_id.get(transactional_id)
        return transaction is None or transaction.is_exhausted

    def write_error(self, transactional_id: str, producer_id: int, epoch: int) -> ErrorCode:
        """Return the error for a producer that writes within its transaction; NONE if it may."""
        transaction = self.by_id.get(transactional_id)
        if transaction is None or transaction.producer_id != producer_id:
            return ErrorCode.INVALID_PRODUCER_ID_MAPPING
        if transaction.producer_epoch != epoch:
            return ErrorCode.PRODUCER_FENCED
        if transaction.state.is_prepared:
            return ErrorCode.CONCURRENT_TRANSACTIONS
        return ErrorCode.NONE

    def missing_partitions(self, transactional_id: str, partitions: Collection[TopicPartition]) -> set[TopicPartition]:
        """Return those partitions that are not in the open transaction."""
        transaction = self.by_id.get(transactional_id)
        return set(partitions) - (transaction.partitions if transaction else frozenset())

    def _decide_producer(self, event: ProducerRequested) -> Outcome:
        transaction = self.by_id.get(event.transactional_id)
        if transaction is None:
            return producer_decision(event.ticket, new_transaction(event))
        after = take_over_id(transaction, event)
        # The previous producer left a transaction open. It is fenced and aborted now, and the new producer retries.
        if after == ErrorCode.CONCURRENT_TRANSACTIONS and transaction.state == TransactionState.ONGOING:
            record = self._record(fence_transaction(transaction, event.wall_ms))
            return Decision((record,), error_decision(event.ticket, after).replies)
        if isinstance(after, ErrorCode):
            return error_decision(event.ticket, after)
        return producer_decision(event.ticket, after)

    def _decide_partitions(self, event: PartitionsAdded, now: float) -> Outcome:
        error = self.write_error(event.transactional_id, event.producer_id, event.epoch)
        if error:
            return error_decision(event.ticket, error)
        transaction = self.by_id[event.transactional_id]
        # Clients send each partition of each batch; a partition that is in the transaction is not written again.
        if transaction.state == TransactionState.ONGOING and event.partitions <= transaction.partitions:
            return error_decision(event.ticket, ErrorCode.NONE)
        grown = replace(
            transaction,
            state=TransactionState.ONGOING,
            partitions=transaction.partitions | event.partitions,
            started_ms=event.wall_ms if transaction.is_idle else transaction.started_ms,
            started_at=now if transaction.is_idle else transaction.started_at,
            is_fenced=False,
            updated_ms=event.wall_ms,
            version=event.version,
        )
        return Decision((self._record(grown),), error_decision(event.ticket, ErrorCode.NONE).replies)

    def _decide_end(self, event: EndRequested) -> Outcome:
        transaction = self.by_id.get(event.transactional_id)
        if transaction is None:
            return error_decision(event.ticket, ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        after = prepare_end(transaction, event)
        if isinstance(after, Transaction):
            return Decision((self._record(after),), (Reply(event.ticket, next_producer_of(after)),))
        if after:
            return error_decision(event.ticket, after)
        return Decision(replies=(Reply(event.ticket, next_producer_of(transaction)),))

    def _decide_completion(self, event: MarkersWritten) -> Outcome:
        transaction = self.by_id.get(event.transactional_id)
        if transaction is None or not transaction.state.is_prepared:
            return error_decision(event.ticket, ErrorCode.INVALID_TXN_STATE)
        done = complete_transaction(transaction, event.wall_ms)
        return Decision((self._record(done),), (Reply(event.ticket, next_producer_of(done)),))

    def _decide_sweep(self, event: TimePassed, now: float) -> Outcome:
        late = [
            fence_transaction(each, event.wall_ms)
            for each in self.by_id.values()
            if each.has_timed_out(now, event.wall_ms, self._known_at)
        ]
        unused = [name for name, each in self.by_id.items() if each.has_expired(event.wall_ms, event.expiration_ms)]
        records = [self._record(each) for each in late] + [TransactionRecord(name, None) for name in unused]
        return Decision(tuple(records), (Reply(event.ticket, (len(late), len(unused))),))

    def _record(self, transaction: Transaction) -> TransactionRecord:
        assert can_follow(self.by_id.get(transaction.transactional_id), transaction)
        return TransactionRecord(transaction.transactional_id, transaction)


def producer_decision(ticket: int, transaction: Transaction) -> Outcome:
    """Return the decision that gives a producer its id and epoch."""
    record = TransactionRecord(transaction.transactional_id, transaction)
    answer = Answer(producer_id=transaction.producer_id, epoch=transaction.producer_epoch)
    return Decision((record,), (Reply(ticket, answer),))


def next_producer_of(transaction: Transaction) -> Answer:
    """Return the producer id and epoch of the next transaction, after the present one is ended."""
    if transaction.next_producer_id != NO_PRODUCER:
        return Answer(producer_id=transaction.next_producer_id, epoch=0)
    return Answer(producer_id=transaction.producer_id, epoch=transaction.producer_epoch)


def error_decision(ticket: int, code: ErrorCode) -> Outcome:
    return Decision(replies=(Reply(ticket, Answer(code)),))
