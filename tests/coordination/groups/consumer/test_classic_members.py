"""Members of the classic protocol in a group of the newer one: their sessions, their names, and what they are sent."""

from __future__ import annotations

import pytest

from ottla.coordination.groups.consumer.classic_members import assignment_bytes
from ottla.coordination.groups.consumer.image import TopicImage
from ottla.coordination.groups.consumer.member import ClassicMetadata, ConsumerMember
from tests.coordination.groups.consumer.prelude import ONE_STABLE
from tests.coordination.groups.consumer.story import Story


def test_a_member_silent_after_its_join_is_removed_with_its_session() -> None:
    Story().play(
        ONE_STABLE,
        """
        join a range=t version=3 session=10 rebalance=60
        a: m1 in 2 by range
        Reconciling 2/2: b@1[t-0 t-1] m1~@2[?]

        wait 9 →
        wait 2 → Assigning 3/2: b@1[t-0 t-1]
    """,
    )


def test_a_member_that_fetches_offsets_during_a_new_epoch_must_rejoin_within_its_rebalance_timeout() -> None:
    Story().play(
        ONE_STABLE,
        """
        join a range=t version=3 session=50 rebalance=20
        a: m1 in 2 by range
        Reconciling 2/2: b@1[t-0 t-1] m1~@2[?]

        sync m1 gen=2 → m1: has nothing

        hello c t
        c: epoch 3 has nothing
        Reconciling 3/3: b@1[t-0 t-1] m1~@2[?] c@3[]

        sync m1 gen=2 → m1: REBALANCE_IN_PROGRESS
        wait 19 →
        wait 2 → Assigning 4/3: b@1[t-0 t-1] c@3[]
    """,
    )


def test_a_join_without_an_id_is_a_new_member_regardless_of_owned_partitions() -> None:
    Story().play(
        ONE_STABLE,
        """
        join a cooperative=t owned=t-0 version=3
        a: m1 in 2 by cooperative
        Reconciling 2/2: b@1[t-0 t-1] m1~@2[?]
    """,
    )


def test_a_returning_static_member_keeps_its_place_and_assignment() -> None:
    story = Story().play(
        ONE_STABLE,
        """
        join a static=i range=t version=9
        a: m1 in 2 by range
        Reconciling 2/2: b@1[t-0 t-1] m1~@2[?]

        alive b
        b: epoch 1 has t-0
        Reconciling 2/2: b@1[t-0 -t-1] m1~@2[?]

        alive b owns=t-0
        b: epoch 2
        Reconciling 2/2: b@2[t-0] m1~@2[?]

        join m1 static=i range=t version=9
        m1: m1 in 2 by range
        Stable 2/2: b@2[t-0] m1~@2[t-1]

        join c static=i range=t version=9
        c: m2 in 2 by range
        Stable 2/2: b@2[t-0] m2~@2[t-1]

        beat m1 gen=2 → m1: UNKNOWN_MEMBER_ID
    """,
    )
    assert story.consumers.instances == {"i": "m2"}
    assert [note for note in story.notes if "joined" in note] == [
        "Member b joined consumer group g with the consumer protocol.",
        "Member m1 with instance id i joined consumer group g with the classic protocol.",
        "Member m2 with instance id i joined consumer group g with the classic protocol.",
    ]


def test_the_broker_records_the_client_of_each_member() -> None:
    story = Story().play(
        ONE_STABLE,
        """
        join a range=t version=3
        a: m1 in 2 by range
        Reconciling 2/2: b@1[t-0 t-1] m1~@2[?]
    """,
    )
    assert [(each.client_id, each.client_host) for each in story.consumers.members.values()] == [("app", "/h")] * 2


@pytest.mark.parametrize(("said", "sent"), [(0, 0), (1, 1), (3, 3), (9, 3)])
def test_each_member_receives_its_assignment_in_the_version_of_its_request(said: int, sent: int) -> None:
    metadata = ClassicMetadata(10_000, (("range", said.to_bytes(2, "big") + b"\1\0\0"),))
    member = ConsumerMember("m", classic=metadata)
    assert assignment_bytes(member, [], TopicImage())[:2] == sent.to_bytes(2, "big")
