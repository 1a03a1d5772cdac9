"""EndTxn: from the request to a decided outcome, and from there to completion.

Pure functions from the present state of a transactional id to its next state, or an error.
"""

from __future__ import annotations

from msgspec.structs import replace

from ottla.coordination.transactions.events import EndRequested
from ottla.coordination.transactions.state import ENDS_V1, ENDS_V2, EndAction, TransactionState
from ottla.coordination.transactions.transaction import (
    EXHAUSTED,
    MAX_EPOCH,
    NO_PRODUCER,
    V2,
    Transaction,
)
from ottla.errors import ErrorCode

ERRORS = {
    EndAction.DONE: ErrorCode.NONE,
    EndAction.WAIT: ErrorCode.CONCURRENT_TRANSACTIONS,
    EndAction.WRONG: ErrorCode.INVALID_TXN_STATE,
    EndAction.FENCED: ErrorCode.PRODUCER_FENCED,
}


def prepare_end(transaction: Transaction, event: EndRequested) -> Transaction | ErrorCode:
    """Return the transaction with its outcome decided; or an error, NONE if the same outcome was decided before."""
    end = end_v2(transaction, event) if event.version >= V2 else end_v1(transaction, event)
    if not isinstance(end, EndAction):
        return end
    if end is not EndAction.PREPARE:
        return ERRORS[end]
    settled = replace(
        transaction,
        state=TransactionState.PREPARE_COMMIT if event.commit else TransactionState.PREPARE_ABORT,
        updated_ms=event.wall_ms,
        version=event.version,
        is_fenced=False,
        # An empty transaction starts when it ends.
        started_ms=event.wall_ms if transaction.is_idle else transaction.started_ms,
    )
    return with_next_epoch(settled, event) if event.version >= V2 else settled


def end_v1(transaction: Transaction, event: EndRequested) -> EndAction | ErrorCode:
    """Return the action for a client that keeps its epoch."""
    if event.producer_id != transaction.producer_id:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    if event.epoch != transaction.producer_epoch:
        return EndAction.FENCED
    return ENDS_V1[transaction.state, event.commit]


def end_v2(transaction: Transaction, event: EndRequested) -> EndAction | ErrorCode:
    """Return the action for a client that gets a new epoch with each transaction (KIP-890)."""
    # The epochs of the id were used up, so the answer that was lost had another producer id in it.
    moved_to_new_id = (
        event.producer_id == transaction.previous_producer_id
        and event.epoch == EXHAUSTED
        and transaction.producer_epoch == 0
    )
    if event.producer_id != transaction.producer_id and not moved_to_new_id:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    # MAX_EPOCH only fences: after a timeout at the last usable epoch the producer needs a new id, which InitProducerId gives.
    fenced_at_last_epoch = transaction.producer_epoch == MAX_EPOCH and transaction.next_producer_id == NO_PRODUCER
    retry = moved_to_new_id or (event.epoch + 1 == transaction.producer_epoch and not fenced_at_last_epoch)
    if not retry and event.epoch != transaction.producer_epoch:
        return EndAction.FENCED
    # Kafka returns INVALID_TXN_STATE, which is fatal too but does not show that the transaction timed out.
    if transaction.is_fenced and transaction.is_idle and retry and event.commit:
        return EndAction.FENCED
    return ENDS_V2[transaction.state, event.commit, retry]


def with_next_epoch(transaction: Transaction, event: EndRequested) -> Transaction:
    """Return the transaction with the epoch of its markers, which is also that of the next transaction unless that gets a new producer id."""
    return replace(
        transaction,
        producer_epoch=min(transaction.producer_epoch + 1, MAX_EPOCH),
        last_epoch=transaction.producer_epoch,
        next_producer_id=event.new_producer_id if transaction.is_exhausted else NO_PRODUCER,
    )


def complete_transaction(transaction: Transaction, wall_ms: int) -> Transaction:
    """Return a prepared transaction as complete, after all its markers were written."""
    commit = transaction.state == TransactionState.PREPARE_COMMIT
    done = replace(
        transaction,
        state=TransactionState.COMPLETE_COMMIT if commit else TransactionState.COMPLETE_ABORT,
        partitions=frozenset(),
        updated_ms=wall_ms,
    )
    # Only now may the new id be used: the markers had to bear the old one, which the partitions know.
    if transaction.next_producer_id == NO_PRODUCER:
        return done
    return replace(
        done,
        producer_id=transaction.next_producer_id,
        previous_producer_id=transaction.producer_id,
        next_producer_id=NO_PRODUCER,
        producer_epoch=0,
    )
