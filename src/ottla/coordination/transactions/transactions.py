"""All transactional ids of one partition of `__transaction_state`.

Decides and replays; draws no ids and reads no clock. Who runs it writes the markers of what `unfinished` shows, and
says so by `MarkersWritten`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from msgspec.structs import replace

from ottla.coordination.machine import Decision, Reply
from ottla.coordination.transactions.ending import completed, prepared
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
from ottla.coordination.transactions.starting import begun, fenced, taken_over
from ottla.coordination.transactions.state import TransactionState
from ottla.coordination.transactions.transaction import NO_PRODUCER, Transaction, may_follow
from ottla.errors import ErrorCode
from ottla.model import TopicPartition

Outcome = Decision[TransactionRecord]


class Transactions:
    def __init__(self, now: float) -> None:
        self._known_at = now
        self.by_id: dict[str, Transaction] = {}
        self._prepared: dict[str, None] = {}

    def decide(self, event: Event, now: float) -> Outcome:
        """What is to be written and answered."""
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
        """The last record of an id counts."""
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

    def unfinished(self) -> Iterator[Transaction]:
        """Those whose outcome is settled and whose markers are to be written."""
        return iter([self.by_id[name] for name in self._prepared])

    def prepared(self, transactional_id: str) -> Transaction | None:
        """The transaction of an id, if its outcome is settled and its markers are to be written."""
        return self.by_id[transactional_id] if transactional_id in self._prepared else None

    def wants_producer_id(self, transactional_id: str) -> bool:
        """Whether the next event of that id may use up a fresh producer id."""
        transaction = self.by_id.get(transactional_id)
        return transaction is None or transaction.is_exhausted

    def error_in(self, transactional_id: str, producer_id: int, epoch: int) -> ErrorCode:
        """What keeps this producer from writing within its transaction; NONE where nothing does."""
        transaction = self.by_id.get(transactional_id)
        if transaction is None or transaction.producer_id != producer_id:
            return ErrorCode.INVALID_PRODUCER_ID_MAPPING
        if transaction.producer_epoch != epoch:
            return ErrorCode.PRODUCER_FENCED
        if transaction.state.is_prepared:
            return ErrorCode.CONCURRENT_TRANSACTIONS
        return ErrorCode.NONE

    def missing(self, transactional_id: str, partitions: Collection[TopicPartition]) -> set[TopicPartition]:
        """Which of these are not in the transaction that is under way."""
        transaction = self.by_id.get(transactional_id)
        return set(partitions) - (transaction.partitions if transaction else frozenset())

    def _decide_producer(self, event: ProducerRequested) -> Outcome:
        transaction = self.by_id.get(event.transactional_id)
        if transaction is None:
            return started(event.ticket, begun(event))
        after = taken_over(transaction, event)
        # The last producer of this id left a transaction open. It is fenced and aborted now, and the new one comes
        # again.
        if after == ErrorCode.CONCURRENT_TRANSACTIONS and transaction.state == TransactionState.ONGOING:
            record = self._record(fenced(transaction, event.wall_ms))
            return Decision((record,), answered(event.ticket, after).replies)
        if isinstance(after, ErrorCode):
            return answered(event.ticket, after)
        return started(event.ticket, after)

    def _decide_partitions(self, event: PartitionsAdded, now: float) -> Outcome:
        error = self.error_in(event.transactional_id, event.producer_id, event.epoch)
        if error:
            return answered(event.ticket, error)
        transaction = self.by_id[event.transactional_id]
        # Clients ask for each partition of each batch; what is in already is not written again.
        if transaction.state == TransactionState.ONGOING and event.partitions <= transaction.partitions:
            return answered(event.ticket, ErrorCode.NONE)
        grown = replace(
            transaction,
            state=TransactionState.ONGOING,
            partitions=transaction.partitions | event.partitions,
            started_ms=event.wall_ms if transaction.is_idle else transaction.started_ms,
            begun_at=now if transaction.is_idle else transaction.begun_at,
            is_fenced=False,
            updated_ms=event.wall_ms,
            version=event.version,
        )
        return Decision((self._record(grown),), answered(event.ticket, ErrorCode.NONE).replies)

    def _decide_end(self, event: EndRequested) -> Outcome:
        transaction = self.by_id.get(event.transactional_id)
        if transaction is None:
            return answered(event.ticket, ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        after = prepared(transaction, event)
        if isinstance(after, Transaction):
            return Decision((self._record(after),), (Reply(event.ticket, promised(after)),))
        if after:
            return answered(event.ticket, after)
        return Decision(replies=(Reply(event.ticket, promised(transaction)),))

    def _decide_completion(self, event: MarkersWritten) -> Outcome:
        transaction = self.by_id.get(event.transactional_id)
        if transaction is None or not transaction.state.is_prepared:
            return answered(event.ticket, ErrorCode.INVALID_TXN_STATE)
        done = completed(transaction, event.wall_ms)
        return Decision((self._record(done),), (Reply(event.ticket, promised(done)),))

    def _decide_sweep(self, event: TimePassed, now: float) -> Outcome:
        late = [
            fenced(each, event.wall_ms)
            for each in self.by_id.values()
            if each.has_timed_out(now, event.wall_ms, self._known_at)
        ]
        unused = [name for name, each in self.by_id.items() if each.has_expired(event.wall_ms, event.expiration_ms)]
        records = [self._record(each) for each in late] + [TransactionRecord(name, None) for name in unused]
        return Decision(tuple(records), (Reply(event.ticket, (len(late), len(unused))),))

    def _record(self, transaction: Transaction) -> TransactionRecord:
        assert may_follow(self.by_id.get(transaction.transactional_id), transaction)
        return TransactionRecord(transaction.transactional_id, transaction)


def started(ticket: int, transaction: Transaction) -> Outcome:
    """A producer that has what it asked for."""
    record = TransactionRecord(transaction.transactional_id, transaction)
    answer = Answer(producer_id=transaction.producer_id, epoch=transaction.producer_epoch)
    return Decision((record,), (Reply(ticket, answer),))


def promised(transaction: Transaction) -> Answer:
    """The id and epoch with which the producer goes on once the present transaction is ended."""
    if transaction.next_producer_id != NO_PRODUCER:
        return Answer(producer_id=transaction.next_producer_id, epoch=0)
    return Answer(producer_id=transaction.producer_id, epoch=transaction.producer_epoch)


def answered(ticket: int, code: ErrorCode) -> Outcome:
    return Decision(replies=(Reply(ticket, Answer(code)),))
