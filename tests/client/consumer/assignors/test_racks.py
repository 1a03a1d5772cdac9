"""Members and replicas in the same rack (KIP-881)."""

from __future__ import annotations

import pytest

from ottla.client.consumer.assignors.racks import Nearness
from ottla.model import TopicPartition

EAST, WEST, NORTH = (TopicPartition("t", number) for number in range(3))
PLACES = {EAST: frozenset({"east"}), WEST: frozenset({"west"}), NORTH: frozenset({"north"})}


def test_without_common_racks_no_partition_is_remote() -> None:
    nearness = Nearness({"a": "south", "b": "overseas"}, PLACES)
    assert not nearness.member_racks
    assert not any(nearness.is_far(member, each) for member in "ab" for each in PLACES)


def test_with_replicas_in_every_rack_no_partition_is_remote() -> None:
    everywhere = frozenset({"east", "west"})
    nearness = Nearness({"a": "east"}, {EAST: everywhere, WEST: everywhere})
    assert not nearness.member_racks


def test_a_partition_is_remote_without_a_replica_in_the_members_rack_and_never_for_a_member_without_a_rack() -> None:
    nearness = Nearness({"a": "east"}, PLACES)
    assert [nearness.is_far("a", each) for each in PLACES] == [False, True, True]
    assert not any(nearness.is_far("b", each) for each in PLACES)


def test_partitions_with_the_fewest_nearby_members_come_first() -> None:
    nearness = Nearness({"a": "east", "b": "east", "c": "west"}, PLACES)
    assert nearness.sort_rarest_first([EAST, WEST, NORTH]) == [NORTH, WEST, EAST]


@pytest.mark.parametrize(("first", "place"), [(0, 0), (1, 2), (2, 2), (3, 0)])
def test_the_next_member_in_turn_is_a_nearby_one(first: int, place: int) -> None:
    nearness = Nearness({"a": "east", "b": "west", "c": "east", "d": "west"}, PLACES)
    assert nearness.next_near(EAST, "abcd", first) == place
    assert nearness.next_near(NORTH, "abcd", first) == -1
