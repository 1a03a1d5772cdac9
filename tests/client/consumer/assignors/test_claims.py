"""The generation of a member's claims, in each format that states it."""

from __future__ import annotations

import pytest

from ottla.client.consumer.assignors.assignor import Assignment, Subscription
from ottla.client.consumer.assignors.cooperative_sticky import CooperativeStickyAssignor, claim
from ottla.model import TopicPartition

OWNED = [TopicPartition("t", 0)]


@pytest.mark.parametrize(
    ("generation", "data", "since"),
    [
        (4, b"\0\0\0\x09", 4),
        (0, b"\0\0\0\x09", 0),
        (-1, b"\0\0\0\x09", 9),
        (-1, b"\0\0\0\x09and more", 9),
        (-1, b"\xff\xff\xff\xfe", -2),
        (-1, b"\0\0\x09", -1),
        (-1, b"", -1),
        (-1, None, None),
    ],
)
def test_the_generation_of_the_subscription_counts_before_that_of_older_members(
    generation: int, data: bytes | None, since: int | None
) -> None:
    said = claim(Subscription(topics=["t"], owned_partitions=OWNED, generation_id=generation, user_data=data))
    assert (said.partitions, said.generation) == (OWNED, since)


def test_a_member_sends_the_generation_of_its_last_assignment_in_four_bytes() -> None:
    mine = CooperativeStickyAssignor()
    assert (mine.version, mine.subscription_user_data(["t"])) == (0, b"\xff\xff\xff\xff")
    mine.on_assignment(Assignment(OWNED), 7)
    assert mine.subscription_user_data(["t"]) == b"\0\0\0\x07"
