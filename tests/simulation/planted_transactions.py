"""Mistakes that implementations of transactions have made, each to be planted and found by the histories."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ottla.coordination.transactions.events import Answer
from ottla.coordination.transactions.transaction import V2
from tests.simulation.transaction_broker import TransactionBroker

Plant = Callable[[pytest.MonkeyPatch], None]


def keeps_the_epoch_at_the_end(patch: pytest.MonkeyPatch) -> None:
    """KAFKA-17754: an EndTxn that comes late, or twice, ends the transaction after the one that it was for."""
    end = TransactionBroker.end

    def end_and_keep(
        self: TransactionBroker, name: str, producer_id: int, epoch: int, commit: bool, version: int
    ) -> Answer:
        return end(self, name, producer_id, epoch, commit, min(version, V2 - 1))

    patch.setattr(TransactionBroker, "end", end_and_keep)


PLANTED: dict[Plant, int] = {keeps_the_epoch_at_the_end: 0}
"""And a seed at which it was found, to be tried first."""
