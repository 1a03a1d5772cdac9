"""A transaction that one producer has filled and another will end."""

from __future__ import annotations

from typing import NamedTuple


class OpenTransaction(NamedTuple):
    """All that is needed to end it: `Producer.hand_over_transaction` gives it, `take_over_transaction` takes it.

    It may travel to another process or machine. A new producer of the same `transactional.id` that calls
    `init_transactions` aborts it, and so does the coordinator after `transaction.timeout.ms`.
    """

    transactional_id: str
    producer_id: int
    epoch: int
    implicit: bool
    """Whether brokers take partitions into it by themselves (KIP-890), which decides how it is ended."""
