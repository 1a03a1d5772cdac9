"""InitProducerId of a transactional id: which producer id and epoch it returns, and which producer it fences.

Pure functions from the present state of a transactional id to its next state, or an error.
"""

from __future__ import annotations

from msgspec.structs import replace

from ottla.coordination.transactions.events import ProducerRequested
from ottla.coordination.transactions.state import TransactionState
from ottla.coordination.transactions.transaction import EXHAUSTED, MAX_EPOCH, NO_EPOCH, NO_PRODUCER, Transaction
from ottla.errors import ErrorCode


def new_transaction(event: ProducerRequested) -> Transaction:
    """Return the first state of a transactional id that is new, or has expired: any producer may use it."""
    return Transaction(
        transactional_id=event.transactional_id,
        producer_id=event.new_producer_id,
        producer_epoch=0,
        timeout_ms=event.timeout_ms,
        updated_ms=event.wall_ms,
    )


def take_over_id(transaction: Transaction, event: ProducerRequested) -> Transaction | ErrorCode:
    """Return the id with the requesting producer; an Ongoing transaction has to be aborted first (`fence_transaction`)."""
    # In this order: a fenced producer must not wait for a transaction of another producer.
    if not is_known_producer(transaction, event):
        return ErrorCode.PRODUCER_FENCED
    if not transaction.is_idle:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    fresh = replace(
        transaction,
        state=TransactionState.EMPTY,
        timeout_ms=event.timeout_ms,
        partitions=frozenset(),
        started_ms=-1,
        is_fenced=False,
        updated_ms=event.wall_ms,
    )
    named = event.producer_id != NO_PRODUCER
    # 32,766 epochs are used up. Kafka gives a new producer id, of which no partition remembers a sequence.
    # `last_epoch` is the producer's own epoch if its transaction timed out at that point.
    if transaction.is_exhausted and (not named or event.epoch in (transaction.producer_epoch, transaction.last_epoch)):
        return with_new_producer_id(fresh, event, last_epoch=event.epoch if named else NO_EPOCH)
    return with_bumped_epoch(fresh, event)


def is_known_producer(transaction: Transaction, event: ProducerRequested) -> bool:
    """Return True if a producer that sends its id is the present one, or was until its epochs were exhausted (KIP-360)."""
    if event.producer_id in (NO_PRODUCER, transaction.producer_id):
        return True
    return event.producer_id == transaction.previous_producer_id and event.epoch >= EXHAUSTED


def with_new_producer_id(transaction: Transaction, event: ProducerRequested, *, last_epoch: int) -> Transaction:
    """Return the id with a new producer id, because the epochs of the old one are exhausted."""
    return replace(
        transaction,
        producer_id=event.new_producer_id,
        previous_producer_id=transaction.producer_id,
        next_producer_id=NO_PRODUCER,
        producer_epoch=0,
        last_epoch=last_epoch,
    )


def with_bumped_epoch(transaction: Transaction, event: ProducerRequested) -> Transaction | ErrorCode:
    """Return the id with the next epoch, which fences the producer with the present one."""
    present = transaction.producer_epoch
    if event.producer_id == NO_PRODUCER:
        return replace(transaction, producer_epoch=present + 1, last_epoch=NO_EPOCH)
    if event.epoch == present:
        return replace(transaction, producer_epoch=present + 1, last_epoch=present)
    # A retry after a lost response. Another producer in between would have cleared `last_epoch`.
    if event.epoch == transaction.last_epoch != NO_EPOCH:
        return transaction
    return ErrorCode.PRODUCER_FENCED


def fence_transaction(transaction: Transaction, wall_ms: int) -> Transaction:
    """Return an Ongoing transaction as prepared to be aborted, with an epoch above that of its producer.

    The new epoch is the next one and the old one is remembered. A producer with a transaction that timed out may therefore continue: its own
    EndTxn (abort, from version 5 on) or InitProducerId with the old epoch counts as a retry and returns the next epoch (KIP-588,
    KAFKA-19367). Its batches and its commit are refused. If another producer takes over, that one's InitProducerId moves the epoch
    once more and clears the remembered one.
    """
    return replace(
        transaction,
        state=TransactionState.PREPARE_ABORT,
        producer_epoch=min(transaction.producer_epoch + 1, MAX_EPOCH),
        last_epoch=transaction.producer_epoch,
        is_fenced=True,
        updated_ms=wall_ms,
    )
