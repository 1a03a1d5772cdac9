"""Histories of a partition's replicas, and planted bugs that they must find.

`OTTLA_HISTORIES=10000` sets the number of histories.
"""

from __future__ import annotations

import os
from itertools import chain

import pytest

from tests.simulation.planted_replicas import PLANTED, Plant
from tests.simulation.replica_history import ReplicaHistory
from tests.simulation.seeds import chosen, is_found, play

HISTORIES = int(os.environ.get("OTTLA_HISTORIES", "132"))
PARTS = 4
PATIENCE = 200
"""Histories in which a mistake must show."""


@pytest.mark.parametrize("part", range(PARTS))
def test_under_any_faults_a_partition_keeps_acknowledged_records(part: int) -> None:
    play(ReplicaHistory, [seed for seed in chosen(HISTORIES) if seed % PARTS == part])


@pytest.mark.parametrize("plant", PLANTED, ids=lambda plant: plant.__name__)
def test_a_planted_mistake_is_found(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    assert is_found(ReplicaHistory, chain([PLANTED[plant]], range(PATIENCE)))
