"""A partition's copies over storage's own log through many histories, and the mistakes that these must find.

`OTTLA_HISTORIES=10000` plays so many of them.
"""

from __future__ import annotations

import os
from itertools import chain

import pytest

from tests.simulation.planted_storage import PLANTED, Plant
from tests.simulation.seeds import chosen, is_found, play
from tests.simulation.stored_history import StoredHistory

HISTORIES = int(os.environ.get("OTTLA_HISTORIES", "8"))
PARTS = 2
PATIENCE = 200
"""Histories in which a mistake must show."""


@pytest.mark.behaviour("P3")
@pytest.mark.parametrize("part", range(PARTS))
def test_whatever_befalls_the_copies_and_their_disks_each_value_is_there_once(part: int) -> None:
    play(StoredHistory, [seed for seed in chosen(HISTORIES) if seed % PARTS == part])


@pytest.mark.parametrize("plant", PLANTED, ids=lambda plant: plant.__name__)
def test_a_planted_mistake_is_found(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    assert is_found(StoredHistory, chain([PLANTED[plant]], range(PATIENCE)))
