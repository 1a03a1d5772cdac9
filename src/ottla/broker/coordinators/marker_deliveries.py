"""The markers of prepared transactions: which partitions have theirs, and when a transaction is complete.

    deliver ──► a marker to each partition without one ──┬─► NONE, or the partition was deleted: done ──► the last one: on_delivered
                                                         └─► any other error: sent again by the next call of `deliver`

Only partitions without a marker get one again. If one disk fails for long, the healthy partitions do not fill with repeated markers.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable
from functools import partial

from ottla.broker.coordinators.transaction_markers import MarkerCallback, TransactionEnd
from ottla.coordination.transactions.state import TransactionState
from ottla.coordination.transactions.transaction import Transaction
from ottla.errors import ErrorCode, name_of
from ottla.model import TopicPartition

log = logging.getLogger(__name__)
DELIVERED = (ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
"""A deleted partition needs no marker."""
SUPERSEDED = (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED)
"""The partition knows a later producer epoch or a later coordinator, which has ended the transaction there."""
WriteMarker = Callable[[TopicPartition, TransactionEnd, MarkerCallback], None]


class Delivery:
    """The markers of one transaction."""

    def __init__(self, transaction: Transaction, end: TransactionEnd, on_delivered: Callable[[], None]) -> None:
        self.transaction = transaction
        self.end = end
        self.missing = set(transaction.partitions)
        """Partitions without a marker."""
        self.in_flight: set[TopicPartition] = set()
        self.on_delivered = on_delivered


class MarkerDeliveries:
    """The deliveries in progress, by coordinator partition and transactional id."""

    def __init__(self, write_marker: WriteMarker, retry_later: Callable[[], None]) -> None:
        """`retry_later` is called after an error: `deliver` must be called again."""
        self._write_marker = write_marker
        self._retry_later = retry_later
        self._deliveries: dict[tuple[Hashable, str], Delivery] = {}

    def deliver(
        self, coordinator: Hashable, transaction: Transaction, coordinator_epoch: int, on_delivered: Callable[[], None]
    ) -> None:
        """Send the missing markers of a prepared transaction.

        `on_delivered` is called when every partition has its marker, and at each further call of `deliver` until `forget`.
        """
        key = coordinator, transaction.transactional_id
        delivery = self._deliveries.get(key)
        if delivery is None or not is_same_end(delivery.transaction, transaction):
            end = transaction_end(transaction, coordinator_epoch)
            delivery = self._deliveries[key] = Delivery(transaction, end, on_delivered)
        if not delivery.missing:
            on_delivered()
            return
        for topic_partition in sorted(delivery.missing - delivery.in_flight):
            delivery.in_flight.add(topic_partition)
            self._write_marker(topic_partition, delivery.end, partial(self._on_done, key, delivery, topic_partition))

    def forget(self, coordinator: Hashable, transactional_id: str) -> None:
        """Drop the delivery of a transaction that is recorded as complete."""
        self._deliveries.pop((coordinator, transactional_id), None)

    def retire(self, coordinator: Hashable) -> None:
        """Drop the deliveries of a partition that another broker coordinates now; later results are ignored."""
        for key in [each for each in self._deliveries if each[0] == coordinator]:
            del self._deliveries[key]

    def _on_done(
        self, key: tuple[Hashable, str], delivery: Delivery, topic_partition: TopicPartition, code: int
    ) -> None:
        delivery.in_flight.discard(topic_partition)
        if self._deliveries.get(key) is not delivery:
            return
        if code in SUPERSEDED:
            log.warning(
                "marker superseded partition=%s transactional_id=%r error=%s", topic_partition, key[1], name_of(code)
            )
        elif code not in DELIVERED:
            self._retry_later()
            return
        delivery.missing.discard(topic_partition)
        if not delivery.missing:
            delivery.on_delivered()


def transaction_end(transaction: Transaction, coordinator_epoch: int) -> TransactionEnd:
    return TransactionEnd(
        transaction.producer_id,
        transaction.producer_epoch,
        transaction.state == TransactionState.PREPARE_COMMIT,
        coordinator_epoch,
        transaction.version,
    )


def is_same_end(one: Transaction, other: Transaction) -> bool:
    """Return True if both are the same end of a transaction, even if the state was read again from the log in between."""
    return identity_of_end(one) == identity_of_end(other)


def identity_of_end(transaction: Transaction) -> tuple[int, int, TransactionState, int]:
    return transaction.producer_id, transaction.producer_epoch, transaction.state, transaction.updated_ms
