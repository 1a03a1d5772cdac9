"""Groups to which anything may happen, with real members and a real coordinator."""

from __future__ import annotations

import pytest

from tests.simulation.group_history import GroupHistory
from tests.simulation.seeds import chosen, play

PARTS = 10
"""So that a failure does not hide those of other parts."""
HISTORIES = 700


@pytest.mark.parametrize("part", range(PARTS))
def test_whatever_befalls_a_group_nothing_is_owned_twice_and_nobody_is_stuck(part: int) -> None:
    play(GroupHistory, [seed for seed in chosen(HISTORIES) if seed % PARTS == part])


def test_a_seed_tells_the_whole_history() -> None:
    first, second = GroupHistory(7), GroupHistory(7)
    first.run()
    second.run()
    assert first.world.transcript() == second.world.transcript()
    assert len(first.world.story) > 10
