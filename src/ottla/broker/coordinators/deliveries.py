"""The markers of transactions that are decided: which of them are where they belong, and when all are.

    deliver ──► a marker for each partition that has none ──► told NONE, or that there is no such partition ──► the last one: over
                                                          └─► told anything else ──► sent again when `deliver` is called again

A marker that is there is not written again, also where others fail for long: a sick disk must not fill the sound ones.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable
from functools import partial

from ottla.broker.coordinators.end_markers import TransactionEnd
from ottla.broker.coordinators.markers_elsewhere import Told
from ottla.coordination.transactions.state import TransactionState
from ottla.coordination.transactions.transaction import Transaction
from ottla.errors import ErrorCode, name_of
from ottla.model import TopicPartition

log = logging.getLogger(__name__)
SETTLED = (ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
"""A partition that is no more needs no marker."""
OUTDATED = (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED)
"""The partition knows of a later producer, or of a later coordinator, who has seen to it."""
Write = Callable[[TopicPartition, TransactionEnd, Told], None]


class Delivery:
    """All markers of one transaction."""

    def __init__(self, transaction: Transaction, end: TransactionEnd, over: Callable[[], None]) -> None:
        self.transaction = transaction
        self.end = end
        self.left = set(transaction.partitions)
        """Those that have no marker yet."""
        self.asked: set[TopicPartition] = set()
        """Those of which the outcome is awaited."""
        self.over = over


class Deliveries:
    """By transactional id and by whoever coordinates it at present."""

    def __init__(self, write: Write, failed: Callable[[], None]) -> None:
        """`failed` is called when something has to be delivered again."""
        self._write = write
        self._failed = failed
        self._under_way: dict[tuple[Hashable, str], Delivery] = {}

    def deliver(
        self, coordinator: Hashable, transaction: Transaction, coordinator_epoch: int, over: Callable[[], None]
    ) -> None:
        """Send what is not there yet of a prepared transaction; `over` is called when all is, and until it is `forget`-ed again."""
        key = coordinator, transaction.transactional_id
        delivery = self._under_way.get(key)
        if delivery is None or not is_same(delivery.transaction, transaction):
            end = end_of(transaction, coordinator_epoch)
            delivery = self._under_way[key] = Delivery(transaction, end, over)
        if not delivery.left:
            over()
            return
        for place in sorted(delivery.left - delivery.asked):
            delivery.asked.add(place)
            self._write(place, delivery.end, partial(self._told, key, delivery, place))

    def forget(self, coordinator: Hashable, transactional_id: str) -> None:
        """Let go of a transaction that is kept as over."""
        self._under_way.pop((coordinator, transactional_id), None)

    def retire(self, coordinator: Hashable) -> None:
        """Another broker coordinates these: what is told of their markers does not count here."""
        for key in [each for each in self._under_way if each[0] == coordinator]:
            del self._under_way[key]

    def _told(self, key: tuple[Hashable, str], delivery: Delivery, place: TopicPartition, code: int) -> None:
        delivery.asked.discard(place)
        if self._under_way.get(key) is not delivery:
            return
        if code in OUTDATED:
            log.warning("%s takes no marker of %r: %s", place, key[1], name_of(code))
        elif code not in SETTLED:
            self._failed()
            return
        delivery.left.discard(place)
        if not delivery.left:
            delivery.over()


def end_of(transaction: Transaction, coordinator_epoch: int) -> TransactionEnd:
    return TransactionEnd(
        transaction.producer_id,
        transaction.producer_epoch,
        transaction.state == TransactionState.PREPARE_COMMIT,
        coordinator_epoch,
        transaction.version,
    )


def is_same(one: Transaction, other: Transaction) -> bool:
    """Whether it is the same end, also where the state was read again from the log meanwhile."""
    return marks_of(one) == marks_of(other)


def marks_of(transaction: Transaction) -> tuple[int, int, TransactionState, int]:
    return transaction.producer_id, transaction.producer_epoch, transaction.state, transaction.updated_ms
