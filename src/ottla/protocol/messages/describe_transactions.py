"""DescribeTransactions: the state of transactions by id (KIP-664)."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.protocol.schema import Int16, Int32, Int64, Message, String, message, struct


@message(key=65, versions="0", flexible="0+")
class DescribeTransactionsRequest(Message):
    transactional_ids: Sequence[String] = ()


@struct
class TopicData:
    topic: String = ""
    partitions: Sequence[Int32] = ()


@struct
class TransactionState:
    error_code: Int16 = 0
    transactional_id: String = ""
    transaction_state: String = ""
    transaction_timeout_ms: Int32 = 0
    transaction_start_time_ms: Int64 = 0
    producer_id: Int64 = 0
    producer_epoch: Int16 = 0
    topics: Sequence[TopicData] = ()
    """Partitions without a marker so far."""


@message(key=65, versions="0", flexible="0+")
class DescribeTransactionsResponse(Message):
    throttle_time_ms: Int32 = 0
    transaction_states: Sequence[TransactionState] = ()
