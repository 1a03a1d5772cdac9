"""Transactions to which anything may happen, with a real coordinator and the real state of producers."""

from __future__ import annotations

from itertools import chain

import pytest

from tests.simulation.planted_transactions import PLANTED, Plant
from tests.simulation.seeds import chosen, is_found, play
from tests.simulation.transaction_history import TransactionHistory

PARTS = 4
HISTORIES = 800
PATIENCE = 200
"""Histories in which a mistake must show."""


@pytest.mark.parametrize("part", range(PARTS))
def test_under_any_faults_a_transaction_has_one_outcome_everywhere(part: int) -> None:
    play(TransactionHistory, [seed for seed in chosen(HISTORIES) if seed % PARTS == part])


@pytest.mark.parametrize("plant", PLANTED, ids=lambda plant: plant.__name__)
def test_a_planted_mistake_is_found(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    assert is_found(TransactionHistory, chain([PLANTED[plant]], range(PATIENCE)))
