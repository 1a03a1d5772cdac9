"""InitProducerId of a transactional id: who gets which id and epoch, and who is fenced by it.

Pure: from how the id stands to how it shall stand, or the error.
"""

from __future__ import annotations

from msgspec.structs import replace

from ottla.coordination.transactions.events import ProducerRequested
from ottla.coordination.transactions.state import TransactionState
from ottla.coordination.transactions.transaction import EXHAUSTED, MAX_EPOCH, NO_EPOCH, NO_PRODUCER, Transaction
from ottla.errors import ErrorCode


def begun(event: ProducerRequested) -> Transaction:
    """A transactional id that nobody has used yet, or for so long that it was forgotten: any producer may have it."""
    return Transaction(
        transactional_id=event.transactional_id,
        producer_id=event.fresh_producer_id,
        producer_epoch=0,
        timeout_ms=event.timeout_ms,
        updated_ms=event.wall_ms,
    )


def taken_over(transaction: Transaction, event: ProducerRequested) -> Transaction | ErrorCode:
    """The id in the hands of the producer that asks; an Ongoing transaction is to be aborted first (`fenced`)."""
    # In this order: a producer that was fenced is not asked to wait for what is none of its business.
    if not may_go_on(transaction, event):
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
        return rotated(fresh, event, last_epoch=event.epoch if named else NO_EPOCH)
    return bumped(fresh, event)


def may_go_on(transaction: Transaction, event: ProducerRequested) -> bool:
    """Whether a producer that names its id is the one we know, or was until its epochs were used up (KIP-360)."""
    if event.producer_id in (NO_PRODUCER, transaction.producer_id):
        return True
    return event.producer_id == transaction.previous_producer_id and event.epoch >= EXHAUSTED


def rotated(transaction: Transaction, event: ProducerRequested, *, last_epoch: int) -> Transaction:
    """With a new producer id, because the epochs of the old one are used up."""
    return replace(
        transaction,
        producer_id=event.fresh_producer_id,
        previous_producer_id=transaction.producer_id,
        next_producer_id=NO_PRODUCER,
        producer_epoch=0,
        last_epoch=last_epoch,
    )


def bumped(transaction: Transaction, event: ProducerRequested) -> Transaction | ErrorCode:
    """With the next epoch, which fences whoever has the present one."""
    present = transaction.producer_epoch
    if event.producer_id == NO_PRODUCER:
        return replace(transaction, producer_epoch=present + 1, last_epoch=NO_EPOCH)
    if event.epoch == present:
        return replace(transaction, producer_epoch=present + 1, last_epoch=present)
    # It asked before and did not hear the answer. A producer that came in between would have cleared this.
    if event.epoch == transaction.last_epoch != NO_EPOCH:
        return transaction
    return ErrorCode.PRODUCER_FENCED


def fenced(transaction: Transaction, wall_ms: int) -> Transaction:
    """Return an Ongoing transaction as prepared to be aborted, with an epoch above that of its producer.

    The new epoch is the next one and the old one is remembered. A producer whose transaction timed out may therefore continue: its own
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
