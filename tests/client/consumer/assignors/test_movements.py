"""The choice of the partition that is moved back instead of another."""

from __future__ import annotations

from ottla.client.consumer.assignors.movements import Movements
from ottla.model import TopicPartition

ONE, OTHER, ELSEWHERE = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)


def moved(*moves: tuple[TopicPartition, str, str]) -> Movements:
    made = Movements()
    for move in moves:
        made.record_move(*move)
    return made


def test_a_movement_stays_where_no_partition_moved_in_the_opposite_direction() -> None:
    assert Movements().choose_partition(ONE, "a", "b") == ONE
    assert moved((OTHER, "a", "b")).choose_partition(ONE, "a", "b") == ONE
    assert moved((ELSEWHERE, "b", "a")).choose_partition(ONE, "a", "b") == ONE


def test_a_partition_that_moved_in_the_opposite_direction_moves_back() -> None:
    assert moved((OTHER, "b", "a")).choose_partition(ONE, "a", "b") == OTHER


def test_a_partition_that_moved_on_counts_from_its_first_owner() -> None:
    moves = moved((OTHER, "b", "c"), (OTHER, "c", "a"))
    assert moves.choose_partition(ONE, "a", "b") == OTHER
    assert moves.choose_partition(ONE, "c", "b") == ONE


def test_the_requested_partition_counts_from_its_first_owner_too() -> None:
    assert moved((ONE, "a", "c"), (OTHER, "b", "a")).choose_partition(ONE, "c", "b") == OTHER


def test_a_partition_back_at_its_first_owner_has_not_moved() -> None:
    moves = moved((OTHER, "b", "a"), (OTHER, "a", "b"))
    assert moves.choose_partition(ONE, "a", "b") == ONE
    assert moves.choose_partition(OTHER, "b", "a") == OTHER


def test_of_two_moved_partitions_one_remains_when_the_other_is_back_at_its_owner() -> None:
    third = TopicPartition("t", 2)
    moves = moved((OTHER, "b", "a"), (third, "b", "a"), (third, "a", "b"))
    assert moves.choose_partition(ONE, "a", "b") == OTHER
