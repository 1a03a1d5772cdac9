"""ListTransactions: the transactions that this broker coordinates (KIP-664)."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.protocol.schema import Int16, Int32, Int64, Message, String, message, since, struct


@message(key=66, versions="0-2", flexible="0+")
class ListTransactionsRequest(Message):
    state_filters: Sequence[String] = ()
    """An empty list requests every state; the same for producer ids."""
    producer_id_filters: Sequence[Int64] = ()
    duration_filter: Int64 = since(1, default=-1)
    """Only transactions open for more milliseconds; all if negative."""
    transactional_id_pattern: String | None = since(2, default=None)
    """A regular expression (KIP-1152)."""


@struct
class TransactionState:
    transactional_id: String = ""
    producer_id: Int64 = 0
    transaction_state: String = ""


@message(key=66, versions="0-2", flexible="0+")
class ListTransactionsResponse(Message):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    unknown_state_filters: Sequence[String] = ()
    transaction_states: Sequence[TransactionState] = ()
