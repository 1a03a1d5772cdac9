"""The records of `__transaction_state` in Kafka's schemas. The last record of a transactional id is its state."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import NamedTuple

from ottla.coordination.serde import encode
from ottla.coordination.transactions.state import TransactionState
from ottla.coordination.transactions.transaction import V2, Transaction
from ottla.errors import CorruptRecordError
from ottla.model import TopicPartition
from ottla.protocol.codec import Reader
from ottla.protocol.errors import MalformedError
from ottla.protocol.plan import plan_of
from ottla.protocol.schema import Int8, Int16, Int32, Int64, Message, String, message, struct, tagged

KEY_KIND = 0
PLAIN, TAGGED = 0, 1
"""Versions of the value. The second, which Kafka before 3.5 cannot read, is written only where it is needed."""


@message(key=0, versions="0")
class TransactionLogKey(Message):
    transactional_id: String = ""


@struct
class PartitionsSchema:
    topic: String = ""
    partition_ids: Sequence[Int32] = ()


@message(key=0, versions="0-1", flexible="1+")
class TransactionLogValue(Message):
    producer_id: Int64 = 0
    previous_producer_id: Int64 = tagged(0, since=1, default=-1, ignorable=True)
    next_producer_id: Int64 = tagged(1, since=1, default=-1, ignorable=True)
    producer_epoch: Int16 = 0
    next_producer_epoch: Int16 = tagged(3, since=1, default=-1, ignorable=True)
    transaction_timeout_ms: Int32 = 0
    transaction_status: Int8 = 0
    transaction_partitions: Sequence[PartitionsSchema] | None = ()
    transaction_last_update_timestamp_ms: Int64 = 0
    transaction_start_timestamp_ms: Int64 = 0
    client_transaction_version: Int16 = tagged(2, since=1, default=0, ignorable=True)


class TransactionRecord(NamedTuple):
    """The state of a transactional id; None deletes the id."""

    transactional_id: str
    transaction: Transaction | None


def encode_record(record: TransactionRecord) -> tuple[bytes, bytes | None]:
    """Key and value as bytes."""
    key = encode(KEY_KIND, 0, TransactionLogKey(record.transactional_id))
    transaction = record.transaction
    if transaction is None:
        return key, None
    version = TAGGED if transaction.version >= V2 else PLAIN
    return key, encode(version, version, value_of(transaction))


def value_of(transaction: Transaction) -> TransactionLogValue:
    return TransactionLogValue(
        producer_id=transaction.producer_id,
        previous_producer_id=transaction.previous_producer_id,
        next_producer_id=transaction.next_producer_id,
        producer_epoch=transaction.producer_epoch,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_status=transaction.state,
        transaction_partitions=None
        if transaction.state == TransactionState.EMPTY
        else by_topic(transaction.partitions),
        transaction_last_update_timestamp_ms=transaction.updated_ms,
        transaction_start_timestamp_ms=transaction.started_ms,
        client_transaction_version=transaction.version,
    )


def by_topic(partitions: Iterable[TopicPartition]) -> list[PartitionsSchema]:
    """Partitions as the schema groups them, in order."""
    grouped = groupby(sorted(partitions), key=lambda partition: partition.topic)
    return [PartitionsSchema(topic, [each.partition for each in group]) for topic, group in grouped]


def decode_record(key: bytes | None, value: bytes | None) -> TransactionRecord | None:
    """Return a record of the log; None for one of another kind. CorruptRecordError where it cannot be read."""
    if key is None or int.from_bytes(key[:2], "big") != KEY_KIND:
        return None
    try:
        read_key: TransactionLogKey = Reader(key, 2).read(plan_of(TransactionLogKey, 0))
        name = read_key.transactional_id
        return TransactionRecord(name, None if value is None else decode_value(name, value))
    except MalformedError as error:
        raise CorruptRecordError(f"a record of __transaction_state cannot be read: {error}") from None


def decode_value(transactional_id: str, value: bytes) -> Transaction:
    version = int.from_bytes(value[:2], "big")
    if version not in TransactionLogValue.VERSIONS:
        raise CorruptRecordError(
            f"a transaction's state has version {version}; {TransactionLogValue.VERSIONS} are known"
        )
    read: TransactionLogValue = Reader(value, 2).read(plan_of(TransactionLogValue, version))
    return Transaction(
        transactional_id=transactional_id,
        producer_id=read.producer_id,
        producer_epoch=read.producer_epoch,
        previous_producer_id=read.previous_producer_id,
        next_producer_id=read.next_producer_id,
        timeout_ms=read.transaction_timeout_ms,
        state=state_of(read.transaction_status),
        partitions=frozenset(
            TopicPartition(topic.topic, index)
            for topic in read.transaction_partitions or ()
            for index in topic.partition_ids
        ),
        started_ms=read.transaction_start_timestamp_ms,
        updated_ms=read.transaction_last_update_timestamp_ms,
        version=read.client_transaction_version,
    )


def state_of(number: int) -> TransactionState:
    """Return the state of that number."""
    try:
        return TransactionState(number)
    except ValueError:
        raise CorruptRecordError(
            f"a transaction's state is {number}; {len(TransactionState)} states are known"
        ) from None
