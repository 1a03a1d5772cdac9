"""Histories of a partition's replicas with storage's own log, and planted bugs that they must find.

`OTTLA_HISTORIES=10000` sets the number of histories.
"""

from __future__ import annotations

import os
from itertools import chain

import pytest

from tests.simulation.planted_storage import PLANTED, Plant
from tests.simulation.seeds import chosen, is_found, play
from tests.simulation.stored_history import StoredHistory

pytestmark = pytest.mark.heavy

HISTORIES = int(os.environ.get("OTTLA_HISTORIES", "8"))
PARTS = 2
PATIENCE = 200
"""Histories in which a mistake must show."""


@pytest.mark.behaviour("P3")
@pytest.mark.parametrize("part", range(PARTS))
def test_under_any_replica_and_disk_faults_each_value_is_stored_once(part: int) -> None:
    play(StoredHistory, [seed for seed in chosen(HISTORIES) if seed % PARTS == part])


@pytest.mark.parametrize("plant", PLANTED, ids=lambda plant: plant.__name__)
def test_a_planted_mistake_is_found(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    assert is_found(StoredHistory, chain([PLANTED[plant]], range(PATIENCE)))
