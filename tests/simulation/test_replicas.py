"""A partition's copies through many histories, and the mistakes that the histories must find.

`OTTLA_HISTORIES=10000` plays so many of them.
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
def test_whatever_befalls_a_partition_what_was_acknowledged_stays(part: int) -> None:
    play(ReplicaHistory, [seed for seed in chosen(HISTORIES) if seed % PARTS == part])


@pytest.mark.parametrize("plant", PLANTED, ids=lambda plant: plant.__name__)
def test_a_planted_mistake_is_found(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    assert is_found(ReplicaHistory, chain([PLANTED[plant]], range(PATIENCE)))
