"""Groups to which anything may happen, with real members and a real coordinator."""

from __future__ import annotations

import pytest

from tests.simulation.group_history import GroupHistory
from tests.simulation.seeds import chosen, play

pytestmark = pytest.mark.heavy

PARTS = 10
"""The number of parts. A failure in one part does not hide those in others."""
HISTORIES = 700


MIXED = 100
NEWER = ("consumer",)
BOTH = ("consumer", "classic")


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("protocols", [NEWER, BOTH], ids=["newer", "both"])
def test_under_any_faults_consumer_protocol_and_mixed_groups_recover(part: int, protocols: tuple[str, ...]) -> None:
    play(lambda seed: GroupHistory(seed, protocols), [seed for seed in chosen(MIXED) if seed % PARTS == part])


@pytest.mark.parametrize("part", range(PARTS))
def test_under_any_faults_no_partition_has_two_owners_and_no_member_is_stuck(part: int) -> None:
    play(GroupHistory, [seed for seed in chosen(HISTORIES) if seed % PARTS == part])


def test_a_seed_determines_the_whole_history() -> None:
    first, second = GroupHistory(7), GroupHistory(7)
    first.run()
    second.run()
    assert first.world.transcript() == second.world.transcript()
    assert len(first.world.story) > 10
