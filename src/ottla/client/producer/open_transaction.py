"""A transaction that one producer has filled and another will end."""

from __future__ import annotations

from typing import NamedTuple


class OpenTransaction(NamedTuple):
    """The data needed to end a transaction: returned by `Producer.hand_over_transaction`, used by `take_over_transaction`.

    It may be passed to another process or machine. A new producer with the same `transactional.id` that calls
    `init_transactions` aborts the transaction, and so does the coordinator after `transaction.timeout.ms`.
    """

    transactional_id: str
    producer_id: int
    epoch: int
    implicit: bool
    """True if brokers add partitions to the transaction by themselves (KIP-890), which decides how it is ended."""
