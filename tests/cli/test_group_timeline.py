"""What two looks at a group tell."""

from __future__ import annotations

from ottla.cli.groups.timeline import GroupTimeline
from ottla.client.admin import ConsumerGroupDescription, MemberDescription
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


def told(*looks: ConsumerGroupDescription) -> list[list[str]]:
    timeline = GroupTimeline()
    return [timeline.changes(look) for look in looks]


def test_a_group_that_stays_as_it_is_has_no_news() -> None:
    assert told(group("Stable", aaaa="01"), group("Stable", aaaa="01")) == [["Stable, 1 member"], []]


def test_a_member_that_joins_gets_partitions_once_the_group_is_stable() -> None:
    looks = (
        group("Stable", aaaa="01"),
        group("PreparingRebalance", aaaa="", bbbb=""),
        group("Stable", aaaa="0", bbbb="1"),
    )
    assert told(*looks)[1:] == [
        ["app (bbbb) has joined", "Stable → PreparingRebalance, 2 members"],
        ["PreparingRebalance → Stable, 2 members", "app (bbbb) has got t-1"],
    ]


def test_a_member_that_goes_leaves_its_partitions_to_others() -> None:
    assert told(group("Stable", aaaa="0", bbbb="1"), group("Stable", aaaa="01"))[1] == [
        "app (bbbb) has left or fallen silent",
        "app (aaaa) has got t-1",
    ]


def test_a_static_member_that_is_back_neither_came_nor_went() -> None:
    assert told(static("Stable", "x"), static("Stable", "y"))[1] == ["static member i is back under a new id"]


def test_an_epoch_of_the_new_protocol_is_told() -> None:
    before = group("Stable", aaaa="0")._replace(group_epoch=3)
    assert told(before, before._replace(group_epoch=4))[1] == ["epoch 4"]
