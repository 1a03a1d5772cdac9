"""Mistakes that implementations of transactions have made, each to be planted and found by the histories."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ottla.broker.apis import transactional_write
from ottla.broker.replica_manager.refused_sequences import RejectedSequences
from ottla.coordination.transactions.events import Answer
from ottla.coordination.transactions.transaction import V2
from tests.simulation.transaction_broker import TransactionBroker

Plant = Callable[[pytest.MonkeyPatch], None]


def keeps_the_epoch_at_the_end(patch: pytest.MonkeyPatch) -> None:
    """KAFKA-17754: a delayed or repeated EndTxn ends the following transaction."""
    end = TransactionBroker.end

    def end_and_keep(
        self: TransactionBroker, name: str, producer_id: int, epoch: int, commit: bool, version: int
    ) -> Answer:
        return end(self, name, producer_id, epoch, commit, min(version, V2 - 1))

    patch.setattr(TransactionBroker, "end", end_and_keep)


def forgets_which_batches_it_refused(patch: pytest.MonkeyPatch) -> None:
    """Batches in flight behind a refused one are appended, and the refused one can never be (the gap that KIP-890 left
    open).
    """
    patch.setattr(RejectedSequences, "note_header", lambda *_: None)
    patch.setattr(transactional_write, "ensure_starts_at_zero", lambda *_: None)


def forgets_which_batches_of_older_clients_it_refused(patch: pytest.MonkeyPatch) -> None:
    """The same with sequences that continue across transactions, so that the first one may be any."""
    patch.setattr(RejectedSequences, "note_header", lambda *_: None)


PLANTED: dict[Plant, int] = {
    keeps_the_epoch_at_the_end: 1,
    forgets_which_batches_it_refused: 3,
    forgets_which_batches_of_older_clients_it_refused: 12,
}
"""And a seed at which it was found, to be tried first."""
