"""Partition counts of members, and their balance."""

from __future__ import annotations

from ottla.client.consumer.assignors.holdings import Holdings
from ottla.model import TopicPartition


def held(takers: dict[str, list[str]], **shares: list[str]) -> Holdings:
    """`t0` is partition 0 of topic t."""
    made = Holdings(shares, takers)
    for member, partitions in shares.items():
        for text in partitions:
            made.assign_partition(named(text), member)
    return made


def named(text: str) -> TopicPartition:
    return TopicPartition(text[0], int(text[1:]))


def test_a_difference_of_one_is_even_and_one_of_two_is_not() -> None:
    assert held({"t": ["a", "b"]}, a=["t0", "t1"], b=["t2"]).is_balanced()
    assert not held({"t": ["a", "b"]}, a=["t0", "t1"], b=[]).is_balanced()


def test_partitions_that_no_other_member_subscribes_to_may_be_uneven() -> None:
    assert held({"t": ["a"], "u": ["a", "b"]}, a=["t0", "t1", "t2"], b=["u0"]).is_balanced()


def test_within_a_topic_a_difference_of_one_is_even_however_much_others_have() -> None:
    assert held({"t": ["a", "b"], "u": ["c"]}, a=["t0"], b=[], c=["u0", "u1", "u2"]).is_balanced()


def test_a_member_that_gave_up_all_partitions_of_a_topic_has_none_of_it() -> None:
    holdings = held({"t": ["a", "b"], "u": ["a"]}, a=["t0", "u0", "u1", "u2"], b=[])
    assert not holdings.is_balanced()
    holdings.move_partition(named("t0"), "b")
    assert holdings.is_balanced()
    assert (holdings.sizes, holdings.owner[named("t0")]) == ({"a": 3, "b": 1}, "b")


def test_the_balance_of_a_topic_counts_the_members_that_have_some_of_it() -> None:
    takers = {"t": ["a", "b", "c"], "u": ["c"]}
    assert held(takers, a=["t0"], b=["t1"], c=["u0", "u1", "u2"]).is_balanced()
    assert not held(takers, a=["t0"], b=[], c=["u0", "u1", "t1"]).is_balanced()


def test_of_those_with_fewest_the_first_by_name_is_the_least() -> None:
    holdings = held({"t": ["a", "b", "c"]}, a=["t0"], b=[], c=[])
    assert (holdings.least_loaded("abc"), holdings.least_loaded("cb"), holdings.least_loaded("a")) == ("b", "b", "a")


def test_the_score_is_the_sum_of_all_differences() -> None:
    assert held({"t": ["a", "b", "c"]}, a=["t0", "t1", "t2"], b=["t3"], c=[]).score() == 2 + 3 + 1


def test_a_copy_changes_independently() -> None:
    holdings = held({"t": ["a", "b"]}, a=["t0", "t1"], b=[])
    copied = holdings.copy()
    assert not copied.is_balanced()
    copied.move_partition(named("t0"), "b")
    assert (copied.is_balanced(), holdings.is_balanced()) == (True, False)
