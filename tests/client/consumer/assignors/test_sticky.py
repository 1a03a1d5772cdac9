"""The round robin and the sticky assignors, and their user data."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.client.consumer.assignors import Assignment, Subscription
from ottla.client.consumer.assignors.cooperative_sticky import CooperativeStickyAssignor
from ottla.client.consumer.assignors.java_order import sort_by_hash
from ottla.client.consumer.assignors.round_robin import RoundRobinAssignor
from ottla.client.consumer.assignors.sticky import NOTHING, StickyAssignor, claim, user_data
from ottla.java_hash import java_hash
from ottla.model import TopicPartition
from tests.client.consumer.assignors.clusters import cluster_of, format_assignments, members, plain

TWO_TOPICS = plain(t0=3, t1=3)
T0, T1, T2 = (TopicPartition("t", n) for n in range(3))


@pytest.mark.behaviour("C13")
def test_round_robin_gives_four_members_two_two_one_and_one() -> None:
    assert format_assignments(RoundRobinAssignor(), TWO_TOPICS, members("a", "b", "c", "d", topics=["t0", "t1"])) == {
        "a": "t0p0 t1p1",
        "b": "t0p1 t1p2",
        "c": "t0p2",
        "d": "t1p0",
    }


def test_round_robin_skips_members_that_do_not_subscribe_to_the_topic() -> None:
    wants = {"a": Subscription(topics=["t0"]), "b": Subscription(topics=["t0", "t1"])}
    assert format_assignments(RoundRobinAssignor(), TWO_TOPICS, wants) == {"a": "t0p0 t0p2", "b": "t0p1 t1p0 t1p1 t1p2"}


def test_the_sticky_assignor_distributes_unowned_partitions_in_turn() -> None:
    assert format_assignments(StickyAssignor(), plain(t=4), members("a", "b", topics=["t"])) == {
        "a": "tp0 tp2",
        "b": "tp1 tp3",
    }


def test_the_sticky_assignor_distributes_in_turn_also_with_racks() -> None:
    cluster = cluster_of({"t": [[0, 1], [0, 1], [0, 1], [0]]}, {0: "far", 1: "near"})
    wants = {"a": Subscription(topics=["t"], rack_id="near"), "b": Subscription(topics=["t"], rack_id="far")}
    assert format_assignments(StickyAssignor(), cluster, wants) == {"a": "tp0 tp2", "b": "tp1 tp3"}


@pytest.mark.behaviour("C13")
def test_a_member_that_returns_to_the_sticky_assignor_sends_its_last_assignment() -> None:
    mine = StickyAssignor()
    assert mine.subscription_user_data(["t"]) is None
    mine.on_assignment(Assignment([T2, T0]), 7)
    assert mine.subscription_user_data(["t"]) == b"\0\0\0\1\0\1t\0\0\0\2\0\0\0\0\0\0\0\2\0\0\0\7"
    back = Subscription(topics=["t"], user_data=mine.subscription_user_data(["t"]))
    assert (
        format_assignments(StickyAssignor(), plain(t=3), {"a": Subscription(topics=["t"]), "b": back})["b"] == "tp0 tp2"
    )


def test_user_data_is_read_as_before_it_had_a_generation_too() -> None:
    assert claim(user_data([T1], 3)) == ([T1], 3)
    assert claim(user_data([T1], 3)[:-4]) == ([T1], None)


@given(st.none() | st.binary(max_size=40))
def test_foreign_user_data_is_a_claim_or_ignored(data: bytes | None) -> None:
    found = claim(data)
    assert found == NOTHING or all(isinstance(tp, TopicPartition) for tp in found.partitions)


@pytest.mark.behaviour("C13", "C16")
def test_the_cooperative_assignor_revokes_a_partition_before_another_member_gets_it() -> None:
    a = Subscription(topics=["t"], owned_partitions=[T0, T1, T2], generation_id=3)
    b = Subscription(topics=["t"])
    first = format_assignments(CooperativeStickyAssignor(), plain(t=3), {"a": a, "b": b})
    assert first == {"a": "tp0 tp1", "b": ""}
    a = replace(a, owned_partitions=[T0, T1], generation_id=4)
    assert format_assignments(CooperativeStickyAssignor(), plain(t=3), {"a": a, "b": b}) == {"a": "tp0 tp1", "b": "tp2"}


def test_ownership_claims_of_an_earlier_generation_are_ignored() -> None:
    old = Subscription(topics=["t"], owned_partitions=[T0, T1], generation_id=2)
    new = Subscription(topics=["t"], owned_partitions=[T1, T2], generation_id=3)
    assert format_assignments(CooperativeStickyAssignor(), plain(t=4), {"a": old, "b": new}) == {
        "a": "tp0 tp3",
        "b": "tp1 tp2",
    }


def test_an_older_member_sends_its_generation_in_user_data() -> None:
    mine = CooperativeStickyAssignor()
    mine.on_assignment(Assignment([T0]), 5)
    assert mine.subscription_user_data(["t"]) == b"\0\0\0\5"
    old = Subscription(topics=["t"], owned_partitions=[T0], user_data=mine.subscription_user_data(["t"]))
    assert (
        format_assignments(CooperativeStickyAssignor(), plain(t=1), {"a": Subscription(topics=["t"]), "b": old})["b"]
        == "tp0"
    )


def test_texts_are_hashed_as_in_java() -> None:
    assert java_hash("hello") == 99162322
    assert java_hash("Aa") == java_hash("BB") == 2112
    assert sort_by_hash(["b", "q", "a"]) == ["q", "a", "b"]
