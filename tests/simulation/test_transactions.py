"""Transactions to which anything may happen, with a real coordinator and the real state of producers."""

from __future__ import annotations

import pytest

from tests.simulation.seeds import chosen, play
from tests.simulation.transaction_history import TransactionHistory

PARTS = 4
HISTORIES = 800


@pytest.mark.parametrize("part", range(PARTS))
def test_whatever_befalls_a_transaction_it_ends_in_one_way_everywhere(part: int) -> None:
    play(TransactionHistory, [seed for seed in chosen(HISTORIES) if seed % PARTS == part])
