"""Histories of the controller, and planted bugs that they must find.

`OTTLA_HISTORIES=10000` sets the number of histories.
"""

from __future__ import annotations

import os
from itertools import chain

import pytest

from tests.simulation.controller_history import ControllerHistory, EmptiedHistory, LevelledHistory
from tests.simulation.planted_controller import EMPTIED, LEVELLED, PLANTED, Plant
from tests.simulation.seeds import chosen, is_found, play

HISTORIES = int(os.environ.get("OTTLA_HISTORIES", "60"))
PARTS = 4
PATIENCE = 300
"""Histories in which a mistake must show."""


@pytest.mark.parametrize("part", range(PARTS))
def test_under_any_faults_a_leader_has_all_acknowledged_records_or_reports_a_loss(part: int) -> None:
    play(ControllerHistory, [seed for seed in chosen(HISTORIES) if seed % PARTS == part])


def test_in_histories_leaders_change_and_records_are_acknowledged() -> None:
    histories = [ControllerHistory(seed) for seed in range(20)]
    for history in histories:
        history.run()
    assert sum(history.elections for history in histories) > 50
    assert sum(len(values) for history in histories for values in history.acknowledged.values()) > 50


@pytest.mark.parametrize("plant", PLANTED, ids=lambda plant: plant.__name__)
def test_a_planted_mistake_is_found(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    assert is_found(ControllerHistory, chain([PLANTED[plant]], range(PATIENCE)))


@pytest.mark.parametrize("part", range(PARTS))
def test_under_any_faults_nothing_is_lost_if_all_brokers_are_killed_and_one_disk_is_emptied(part: int) -> None:
    play(EmptiedHistory, [seed for seed in chosen(HISTORIES) if seed % PARTS == part])


@pytest.mark.parametrize("part", range(PARTS))
def test_under_any_faults_nothing_is_lost_while_the_elr_level_changes(part: int) -> None:
    play(LevelledHistory, [seed for seed in chosen(HISTORIES // 2) if seed % PARTS == part])


@pytest.mark.parametrize("plant", LEVELLED, ids=lambda plant: plant.__name__)
def test_a_planted_bug_of_the_elr_level_is_found(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    assert is_found(LevelledHistory, chain([LEVELLED[plant]], range(PATIENCE)))


@pytest.mark.parametrize("plant", EMPTIED, ids=lambda plant: plant.__name__)
def test_a_planted_bug_with_an_emptied_disk_is_found(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    assert is_found(EmptiedHistory, chain([EMPTIED[plant]], range(PATIENCE)))
