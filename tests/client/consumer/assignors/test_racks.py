"""Who is near to what, and whether that matters (KIP-881)."""

from __future__ import annotations

import pytest

from ottla.client.consumer.assignors.racks import Nearness
from ottla.model import TopicPartition

EAST, WEST, NORTH = (TopicPartition("t", number) for number in range(3))
PLACES = {EAST: frozenset({"east"}), WEST: frozenset({"west"}), NORTH: frozenset({"north"})}


def test_where_nobody_is_near_to_anything_nothing_is_far() -> None:
    nearness = Nearness({"a": "south", "b": "overseas"}, PLACES)
    assert not nearness.member_racks
    assert not any(nearness.is_far(member, each) for member in "ab" for each in PLACES)


def test_where_all_is_everywhere_nothing_is_far() -> None:
    everywhere = frozenset({"east", "west"})
    nearness = Nearness({"a": "east"}, {EAST: everywhere, WEST: everywhere})
    assert not nearness.member_racks


def test_a_member_is_far_from_what_has_no_replica_in_its_rack_and_near_to_all_if_it_tells_none() -> None:
    nearness = Nearness({"a": "east"}, PLACES)
    assert [nearness.is_far("a", each) for each in PLACES] == [False, True, True]
    assert not any(nearness.is_far("b", each) for each in PLACES)


def test_those_come_first_that_the_fewest_members_are_near_to() -> None:
    nearness = Nearness({"a": "east", "b": "east", "c": "west"}, PLACES)
    assert nearness.rarest_first([EAST, WEST, NORTH]) == [NORTH, WEST, EAST]


@pytest.mark.parametrize(("first", "place"), [(0, 0), (1, 2), (2, 2), (3, 0)])
def test_the_next_in_turn_is_one_that_is_near(first: int, place: int) -> None:
    nearness = Nearness({"a": "east", "b": "west", "c": "east", "d": "west"}, PLACES)
    assert nearness.next_near(EAST, "abcd", first) == place
    assert nearness.next_near(NORTH, "abcd", first) == -1
