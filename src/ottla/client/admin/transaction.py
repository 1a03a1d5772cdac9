"""Transactions and those who write them, as an admin sees them (KIP-664).

Values only.
"""

from __future__ import annotations

from typing import NamedTuple

from ottla.model import TopicPartition


class TransactionListing(NamedTuple):
    """A transactional id."""

    transactional_id: str
    producer_id: int
    state: str
    """Kafka's names: Empty, Ongoing, PrepareCommit, PrepareAbort, CompleteCommit, CompleteAbort …"""
    coordinator_id: int


class TransactionDescription(NamedTuple):
    """How a transactional id stands."""

    transactional_id: str
    coordinator_id: int
    state: str
    producer_id: int
    producer_epoch: int
    transaction_timeout_ms: int
    transaction_start_time_ms: int | None
    """Milliseconds since the epoch; None where no transaction is under way."""
    topic_partitions: tuple[TopicPartition, ...]


class ProducerState(NamedTuple):
    """A producer as a partition remembers it."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp: int
    """Milliseconds since the epoch."""
    coordinator_epoch: int
    """-1 where no transaction of it ever ended here."""
    current_transaction_start_offset: int | None
    """None where no transaction is open."""


class AbortTransactionSpec(NamedTuple):
    """A transaction that is to be ended in one partition, whatever its coordinator knows of it."""

    topic_partition: TopicPartition
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int


class ProducerIdAndEpoch(NamedTuple):
    """A producer's identity; what has a lower epoch is fenced."""

    producer_id: int
    epoch: int
