"""The range assignor."""

from __future__ import annotations

import pytest

from ottla.client.consumer.assignors import Subscription
from ottla.client.consumer.assignors.range import RangeAssignor
from tests.client.consumer.assignors.clusters import cluster_of, format_assignments, members, plain

TWO_TOPICS = plain(t0=3, t1=3)


@pytest.mark.behaviour("C13")
def test_two_members_get_the_same_numbers_of_both_topics() -> None:
    assert format_assignments(RangeAssignor(), TWO_TOPICS, members("a", "b", topics=["t0", "t1"])) == {
        "a": "t0p0 t0p1 t1p0 t1p1",
        "b": "t0p2 t1p2",
    }


@pytest.mark.behaviour("C13", "C14")
def test_of_four_members_one_is_idle() -> None:
    assert format_assignments(RangeAssignor(), TWO_TOPICS, members("a", "b", "c", "d", topics=["t0", "t1"])) == {
        "a": "t0p0 t1p0",
        "b": "t0p1 t1p1",
        "c": "t0p2 t1p2",
        "d": "",
    }


def test_a_member_gets_only_partitions_of_subscribed_and_known_topics() -> None:
    wants = {"a": Subscription(topics=["t0", "unknown"]), "b": Subscription(topics=["t0", "t1"])}
    assert format_assignments(RangeAssignor(), TWO_TOPICS, wants) == {"a": "t0p0 t0p1", "b": "t0p2 t1p0 t1p1 t1p2"}


def test_a_static_member_keeps_its_place_under_a_new_member_id() -> None:
    wants = {
        "a": Subscription(topics=["t0"], group_instance_id="2"),
        "b": Subscription(topics=["t0"], group_instance_id="1"),
        "0": Subscription(topics=["t0"]),
    }
    assert format_assignments(RangeAssignor(), TWO_TOPICS, wants) == {"b": "t0p0", "a": "t0p1", "0": "t0p2"}


def test_members_get_partitions_of_their_rack_as_far_as_the_counts_allow() -> None:
    cluster = cluster_of({"t": [[1], [0], [1], [1]]}, {0: "east", 1: "west"})
    wants = {
        "a": Subscription(topics=["t"], rack_id="east"),
        "b": Subscription(topics=["t"], rack_id="west"),
    }
    assert format_assignments(RangeAssignor(), cluster, wants) == {"a": "tp1 tp3", "b": "tp0 tp2"}


def test_a_member_near_to_no_more_than_its_share_leaves_the_extra_partition_to_any_member() -> None:
    cluster = cluster_of({"t": [[0], [1], [1]]}, {0: "east", 1: "west"})
    wants = {
        "a": Subscription(topics=["t"], rack_id="east"),
        "b": Subscription(topics=["t"], rack_id="north"),
    }
    assert format_assignments(RangeAssignor(), cluster, wants) == {"a": "tp0 tp1", "b": "tp2"}


def test_the_extra_partition_is_not_assigned_by_rack_once_another_member_has_it() -> None:
    partitions = [[1], [0], [0], [1]]
    cluster = cluster_of({"t": partitions, "u": partitions}, {0: "east", 1: "west"})
    wants = {
        name: Subscription(topics=["t", "u"], rack_id=rack)
        for name, rack in (("a", "east"), ("b", "west"), ("c", "north"))
    }
    assert format_assignments(RangeAssignor(), cluster, wants) == {
        "a": "tp1 tp2 up1 up2",
        "b": "tp0 up0",
        "c": "tp3 up3",
    }


def test_with_copartitioned_topics_no_member_exceeds_its_share_because_of_its_rack() -> None:
    everywhere = [[0, 1]] * 4
    cluster = cluster_of({"t": [*everywhere[:3], [0]], "u": everywhere}, {0: "east", 1: "west"})
    wants = {
        "a": Subscription(topics=["t", "u"], rack_id="east"),
        "b": Subscription(topics=["t", "u"], rack_id="east"),
    }
    assert format_assignments(RangeAssignor(), cluster, wants) == {"a": "tp0 tp1 up0 up1", "b": "tp2 tp3 up2 up3"}


def test_copartitioned_topics_stay_copartitioned_with_racks() -> None:
    cluster = cluster_of({"t": [[1], [0]], "u": [[1], [0]]}, {0: "east", 1: "west"})
    wants = {
        "a": Subscription(topics=["t", "u"], rack_id="east"),
        "b": Subscription(topics=["t", "u"], rack_id="west"),
    }
    assert format_assignments(RangeAssignor(), cluster, wants) == {"a": "tp1 up1", "b": "tp0 up0"}
