"""The events derived from two descriptions of a group."""

from __future__ import annotations

from ottla.client.admin import ConsumerGroupDescription, MemberDescription
from ottla.client.admin.group_timeline import GroupTimeline
from ottla.model import Node, TopicPartition


def group(state: str, **members: str) -> ConsumerGroupDescription:
    """Members by id with the numbers of their partitions."""
    described = tuple(
        MemberDescription(f"app-{name}", None, "app", "/h", tuple(TopicPartition("t", int(p)) for p in numbers))
        for name, numbers in members.items()
    )
    return ConsumerGroupDescription("g", "consumer", "range", "Classic", state, Node(1, "h", 1), described)


def static(state: str, member_id: str) -> ConsumerGroupDescription:
    member = MemberDescription(member_id, "i", "app", "/h", (TopicPartition("t", 0),))
    return group(state)._replace(members=(member,))


def format_changes(*looks: ConsumerGroupDescription) -> list[list[str]]:
    timeline = GroupTimeline()
    return [timeline.changes(print_if_due) for print_if_due in looks]


def test_an_unchanged_group_has_no_events() -> None:
    assert format_changes(group("Stable", aaaa="01"), group("Stable", aaaa="01")) == [["Stable, 1 member"], []]


def test_a_member_that_joins_gets_partitions_once_the_group_is_stable() -> None:
    looks = (
        group("Stable", aaaa="01"),
        group("PreparingRebalance", aaaa="", bbbb=""),
        group("Stable", aaaa="0", bbbb="1"),
    )
    assert format_changes(*looks)[1:] == [
        ["app (bbbb) has joined", "Stable → PreparingRebalance, 2 members"],
        ["PreparingRebalance → Stable, 2 members", "app (bbbb) has got t-1"],
    ]


def test_the_partitions_of_a_leaving_member_are_reassigned() -> None:
    assert format_changes(group("Stable", aaaa="0", bbbb="1"), group("Stable", aaaa="01"))[1] == [
        "app (bbbb) has left or timed out",
        "app (aaaa) has got t-1",
    ]


def test_a_static_member_that_returns_causes_no_join_or_leave_event() -> None:
    assert format_changes(static("Stable", "x"), static("Stable", "y"))[1] == ["static member i is back under a new id"]


def test_an_epoch_of_the_consumer_protocol_is_reported() -> None:
    before = group("Stable", aaaa="0")._replace(group_epoch=3)
    assert format_changes(before, before._replace(group_epoch=4))[1] == ["epoch 4"]
