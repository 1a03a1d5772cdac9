"""Histories of the quorum, and planted bugs that they must find.

`OTTLA_HISTORIES=10000` sets the number of histories.
"""

from __future__ import annotations

import os
from itertools import chain

import pytest

from tests.simulation.planted_quorum import PLANTED, Plant
from tests.simulation.quorum_history import QuorumHistory
from tests.simulation.seeds import chosen, is_found, play

HISTORIES = int(os.environ.get("OTTLA_HISTORIES", "100"))
PARTS = 4
PATIENCE = 200
"""Histories in which a mistake must show."""


@pytest.mark.parametrize("part", range(PARTS))
def test_under_any_faults_a_quorum_has_one_leader_and_keeps_committed_records(part: int) -> None:
    play(QuorumHistory, [seed for seed in chosen(HISTORIES) if seed % PARTS == part])


@pytest.mark.parametrize("plant", PLANTED, ids=lambda plant: plant.__name__)
def test_a_planted_mistake_is_found(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    assert is_found(QuorumHistory, chain([PLANTED[plant]], range(PATIENCE)))
