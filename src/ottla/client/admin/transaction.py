"""Transactions and their producers as an admin sees them (KIP-664). Values only."""

from __future__ import annotations

from typing import NamedTuple

from ottla.model import TopicPartition


class TransactionListing(NamedTuple):
    """A transactional id and its state."""

    transactional_id: str
    producer_id: int
    state: str
    """Kafka's names: Empty, Ongoing, PrepareCommit, PrepareAbort, CompleteCommit, CompleteAbort …"""
    coordinator_id: int


class TransactionDescription(NamedTuple):
    """The state of a transactional id."""

    transactional_id: str
    coordinator_id: int
    state: str
    producer_id: int
    producer_epoch: int
    transaction_timeout_ms: int
    transaction_start_time_ms: int | None
    """Milliseconds since 1970; None if no transaction is open."""
    topic_partitions: tuple[TopicPartition, ...]


class ProducerState(NamedTuple):
    """The state that a partition keeps of a producer."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp: int
    """Milliseconds since 1970."""
    coordinator_epoch: int
    """-1 if no transaction of the producer has ended in this partition."""
    current_transaction_start_offset: int | None
    """None if no transaction is open."""


class AbortTransactionSpec(NamedTuple):
    """A transaction to abort in one partition, regardless of its coordinator."""

    topic_partition: TopicPartition
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int


class ProducerIdAndEpoch(NamedTuple):
    """The identity of a producer. Requests with a lower epoch are fenced."""

    producer_id: int
    epoch: int
