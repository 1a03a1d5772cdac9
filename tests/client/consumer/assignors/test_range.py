"""The range assignor."""

from __future__ import annotations

import pytest

from ottla.client.consumer.assignors import Subscription
from ottla.client.consumer.assignors.range import RangeAssignor
from tests.client.consumer.assignors.clusters import cluster_of, members, plain, told

TWO_TOPICS = plain(t0=3, t1=3)


@pytest.mark.behaviour("C13")
def test_two_members_get_the_same_numbers_of_both_topics() -> None:
    assert told(RangeAssignor(), TWO_TOPICS, members("a", "b", topics=["t0", "t1"])) == {
        "a": "t0p0 t0p1 t1p0 t1p1",
        "b": "t0p2 t1p2",
    }


@pytest.mark.behaviour("C13", "C14")
def test_of_four_members_one_is_idle() -> None:
    assert told(RangeAssignor(), TWO_TOPICS, members("a", "b", "c", "d", topics=["t0", "t1"])) == {
        "a": "t0p0 t1p0",
        "b": "t0p1 t1p1",
        "c": "t0p2 t1p2",
        "d": "",
    }


def test_a_member_gets_only_what_it_wants_and_what_is_known() -> None:
    wants = {"a": Subscription(topics=["t0", "unknown"]), "b": Subscription(topics=["t0", "t1"])}
    assert told(RangeAssignor(), TWO_TOPICS, wants) == {"a": "t0p0 t0p1", "b": "t0p2 t1p0 t1p1 t1p2"}


def test_a_static_member_keeps_its_place_under_a_new_member_id() -> None:
    wants = {
        "a": Subscription(topics=["t0"], group_instance_id="2"),
        "b": Subscription(topics=["t0"], group_instance_id="1"),
        "0": Subscription(topics=["t0"]),
    }
    assert told(RangeAssignor(), TWO_TOPICS, wants) == {"b": "t0p0", "a": "t0p1", "0": "t0p2"}


def test_members_get_partitions_of_their_rack_as_far_as_the_counts_allow() -> None:
    cluster = cluster_of({"t": [[1], [0], [1], [1]]}, {0: "east", 1: "west"})
    wants = {
        "a": Subscription(topics=["t"], rack_id="east"),
        "b": Subscription(topics=["t"], rack_id="west"),
    }
    assert told(RangeAssignor(), cluster, wants) == {"a": "tp1 tp3", "b": "tp0 tp2"}


def test_a_member_that_is_near_to_no_more_than_its_share_leaves_the_one_too_many_to_anybody() -> None:
    cluster = cluster_of({"t": [[0], [1], [1]]}, {0: "east", 1: "west"})
    wants = {
        "a": Subscription(topics=["t"], rack_id="east"),
        "b": Subscription(topics=["t"], rack_id="north"),
    }
    assert told(RangeAssignor(), cluster, wants) == {"a": "tp0 tp1", "b": "tp2"}


def test_where_another_has_the_one_too_many_nobody_gets_it_for_being_near_though_he_had_room_before() -> None:
    partitions = [[1], [0], [0], [1]]
    cluster = cluster_of({"t": partitions, "u": partitions}, {0: "east", 1: "west"})
    wants = {
        name: Subscription(topics=["t", "u"], rack_id=rack)
        for name, rack in (("a", "east"), ("b", "west"), ("c", "north"))
    }
    assert told(RangeAssignor(), cluster, wants) == {"a": "tp1 tp2 up1 up2", "b": "tp0 up0", "c": "tp3 up3"}


def test_of_topics_that_belong_together_nobody_gets_more_than_its_share_for_being_near() -> None:
    everywhere = [[0, 1]] * 4
    cluster = cluster_of({"t": [*everywhere[:3], [0]], "u": everywhere}, {0: "east", 1: "west"})
    wants = {
        "a": Subscription(topics=["t", "u"], rack_id="east"),
        "b": Subscription(topics=["t", "u"], rack_id="east"),
    }
    assert told(RangeAssignor(), cluster, wants) == {"a": "tp0 tp1 up0 up1", "b": "tp2 tp3 up2 up3"}


def test_topics_that_belong_together_stay_together_on_racks() -> None:
    cluster = cluster_of({"t": [[1], [0]], "u": [[1], [0]]}, {0: "east", 1: "west"})
    wants = {
        "a": Subscription(topics=["t", "u"], rack_id="east"),
        "b": Subscription(topics=["t", "u"], rack_id="west"),
    }
    assert told(RangeAssignor(), cluster, wants) == {"a": "tp1 up1", "b": "tp0 up0"}
