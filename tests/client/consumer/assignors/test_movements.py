"""Which partition goes back rather than another goes the other way."""

from __future__ import annotations

from ottla.client.consumer.assignors.movements import Movements
from ottla.model import TopicPartition

ONE, OTHER, ELSEWHERE = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)


def moved(*moves: tuple[TopicPartition, str, str]) -> Movements:
    made = Movements()
    for move in moves:
        made.move(*move)
    return made


def test_nothing_is_better_where_nothing_came_the_other_way() -> None:
    assert Movements().better(ONE, "a", "b") == ONE
    assert moved((OTHER, "a", "b")).better(ONE, "a", "b") == ONE
    assert moved((ELSEWHERE, "b", "a")).better(ONE, "a", "b") == ONE


def test_what_came_the_other_way_goes_back() -> None:
    assert moved((OTHER, "b", "a")).better(ONE, "a", "b") == OTHER


def test_a_partition_that_moved_on_counts_from_its_first_owner() -> None:
    moves = moved((OTHER, "b", "c"), (OTHER, "c", "a"))
    assert moves.better(ONE, "a", "b") == OTHER
    assert moves.better(ONE, "c", "b") == ONE


def test_what_is_asked_about_counts_from_its_first_owner_too() -> None:
    assert moved((ONE, "a", "c"), (OTHER, "b", "a")).better(ONE, "c", "b") == OTHER


def test_a_partition_that_is_home_again_has_not_moved() -> None:
    moves = moved((OTHER, "b", "a"), (OTHER, "a", "b"))
    assert moves.better(ONE, "a", "b") == ONE
    assert moves.better(OTHER, "b", "a") == OTHER


def test_of_two_that_came_the_other_is_left_when_one_is_home_again() -> None:
    third = TopicPartition("t", 2)
    moves = moved((OTHER, "b", "a"), (third, "b", "a"), (third, "a", "b"))
    assert moves.better(ONE, "a", "b") == OTHER
