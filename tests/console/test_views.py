"""The data of console pages that Ottla's own brokers cannot produce."""

from __future__ import annotations

from ottla.client.admin import (
    GroupListing,
    StreamsGroupDescription,
    StreamsMemberDescription,
    StreamsSubtopology,
    StreamsTasks,
)
from ottla.console.views import groups_view, streams_group_view
from ottla.model import Node, OffsetAndMetadata, TopicPartition


def test_groups_of_kinds_without_a_page_are_counted_by_kind() -> None:
    found = [
        GroupListing("shared", "share", "Stable", "Share"),
        GroupListing("b", "consumer", "Stable", "Consumer"),
        GroupListing("workers", "connect", "Empty", "Classic"),
        GroupListing("offsets", "", "Empty", "Classic"),
        GroupListing("words", "streams", "Empty", "Streams"),
    ]
    view = groups_view(found)
    assert [(each["name"], each["type"]) for each in view["groups"]] == [
        ("b", "Consumer"), ("offsets", "Classic"), ("shared", "Share"), ("words", "Streams")
    ]  # fmt: skip
    assert view["others"] == {"connect": 1}
    assert groups_view(found[1:2])["others"] == {}


def test_a_streams_group_has_the_lag_of_each_partition_and_the_member_with_its_task() -> None:
    read, written = TopicPartition("lines", 1), TopicPartition("app-words-repartition", 0)
    tasks = StreamsTasks((("0", 1),), ())
    member = StreamsMemberDescription("m", "client", "/host", "p", 3, tasks, tasks)
    parts = (StreamsSubtopology("0", ("lines",)), StreamsSubtopology("1", (), ("app-words-repartition",)))
    group = StreamsGroupDescription("app", "Stable", Node(1, "h", 9092), (member,), 3, 3, 0, subtopologies=parts)
    view = streams_group_view(
        group, {read: OffsetAndMetadata(4), written: OffsetAndMetadata(1)}, {read: 10, written: 1}
    )
    assert (view["type"], view["lag"], view["members"][0]["partitions"]) == ("Streams", 6, 1)
    assert [(row["topic"], row["offset"], row["end"], row["lag"], row["member"]) for row in view["partitions"]] == [
        ("app-words-repartition", 1, 1, 0, None),
        ("lines", 4, 10, 6, "m"),
    ]
