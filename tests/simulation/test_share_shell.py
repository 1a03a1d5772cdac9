"""Histories of a share group over the broker's shells, and planted bugs that they must find.

`OTTLA_HISTORIES=10000` sets the number of histories.
"""

from __future__ import annotations

import os
from itertools import chain

import pytest

from ottla.broker.coordinators import coordinator_runtime
from tests.simulation.planted_share_shell import PLANTED, Plant
from tests.simulation.seeds import chosen, is_found, play, undisturbed
from tests.simulation.share_shell_history import ShareShellHistory

HISTORIES = int(os.environ.get("OTTLA_HISTORIES", "40"))
PARTS = 4
PATIENCE = 200
"""Histories in which a mistake must show."""
LONG_LOG_BYTES = 3000


@pytest.fixture(autouse=True)
def short_logs_are_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some logs are read on a disk thread, which takes a while."""
    monkeypatch.setattr(coordinator_runtime, "LONG_LOG_BYTES", LONG_LOG_BYTES)


@pytest.mark.parametrize("part", range(PARTS))
def test_under_any_faults_the_shells_keep_settled_records_settled_and_forget_none(part: int) -> None:
    play(ShareShellHistory, [seed for seed in chosen(HISTORIES) if seed % PARTS == part])


def test_in_histories_leaders_change_and_records_are_settled() -> None:
    histories = [ShareShellHistory(seed) for seed in range(10)]
    with undisturbed():
        for history in histories:
            history.run()
    assert sum(history.elections for history in histories) > 20
    assert sum(history.confirmed for history in histories) > 200


@pytest.mark.parametrize("plant", PLANTED, ids=lambda plant: plant.__name__)
def test_a_planted_mistake_is_found(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    assert is_found(ShareShellHistory, chain([PLANTED[plant]], range(PATIENCE)))
