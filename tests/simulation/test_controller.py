"""The controller through many histories, and the mistakes that the histories must find.

`OTTLA_HISTORIES=10000` plays so many of them.
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
def test_whatever_befalls_brokers_who_leads_has_what_was_acknowledged_or_says_that_it_lost_some(part: int) -> None:
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
def test_whatever_befalls_brokers_nothing_is_lost_where_all_are_killed_and_one_disk_is_emptied(part: int) -> None:
    play(EmptiedHistory, [seed for seed in chosen(HISTORIES) if seed % PARTS == part])


@pytest.mark.parametrize("part", range(PARTS))
def test_whatever_befalls_brokers_nothing_is_lost_where_the_level_of_elr_goes_up_and_down(part: int) -> None:
    play(LevelledHistory, [seed for seed in chosen(HISTORIES // 2) if seed % PARTS == part])


@pytest.mark.parametrize("plant", LEVELLED, ids=lambda plant: plant.__name__)
def test_a_mistake_with_the_level_of_elr_is_found(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    assert is_found(LevelledHistory, chain([LEVELLED[plant]], range(PATIENCE)))


@pytest.mark.parametrize("plant", EMPTIED, ids=lambda plant: plant.__name__)
def test_a_mistake_with_an_emptied_disk_is_found(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    assert is_found(EmptiedHistory, chain([EMPTIED[plant]], range(PATIENCE)))
