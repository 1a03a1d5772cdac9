"""Commits of offsets: the required membership, and the retention."""

from __future__ import annotations

import pytest

from ottla.coordination.groups.events import TransactionalOffsetsCommitted
from ottla.errors import ErrorCode
from ottla.model import OffsetAndMetadata, TopicPartition
from tests.coordination.groups.consumer.prelude import GIVEN_BACK
from tests.coordination.groups.consumer.story import Story


def test_members_commit_in_their_epoch_and_in_earlier_ones_for_partitions_owned_since() -> None:
    Story().play("""
        topics t=2 →

        hello a t
        a: epoch 1 has t-0 t-1
        Stable 1/1: a@1[t-0 t-1]

        commit a gen=1 t-0=5 → a: NONE

        hello b t
        b: epoch 2 has nothing
        Reconciling 2/2: a@1[t-0 t-1] b@2[?]

        alive a
        a: epoch 1 has t-0
        Reconciling 2/2: a@1[t-0 -t-1] b@2[?]

        alive a owns=t-0
        a: epoch 2
        Reconciling 2/2: a@2[t-0] b@2[?]

        alive b
        b: epoch 2 has t-1
        Stable 2/2: a@2[t-0] b@2[t-1]

        commit a gen=1 t-0=6 → a: NONE
        commit a gen=1 t-1=6 → a: STALE_MEMBER_EPOCH
        commit a gen=2 t-0=7 → a: NONE
        commit a gen=3 t-0=7 → a: STALE_MEMBER_EPOCH
        commit b gen=2 t-1=1 → b: NONE
        commit b gen=1 t-1=1 → b: STALE_MEMBER_EPOCH
        commit stranger gen=1 t-0=1 → stranger: UNKNOWN_MEMBER_ID
        commit t-0=9 → admin: UNKNOWN_MEMBER_ID
        fetch a → a: NONE
        fetch a epoch=1 → a: STALE_MEMBER_EPOCH
        alive a → a: epoch 2

        bye a
        a: epoch -1
        Assigning 3/2: b@2[t-1]

        bye b
        b: epoch -1
        Empty 4/2

        commit t-0=9 → admin: NONE
    """)


def test_a_commit_of_an_old_version_is_rejected_for_consumer_group_members() -> None:
    Story().play("""
        topics t=1 →

        hello a t
        a: epoch 1 has t-0
        Stable 1/1: a@1[t-0]

        commit a gen=1 version=8 t-0=1 → a: UNSUPPORTED_VERSION
        commit a gen=1 version=9 t-0=1 → a: NONE

        join x range=t version=3
        x: m1 in 2 by range
        Reconciling 2/2: a@1[t-0] m1~@2[]

        commit m1 gen=2 version=8 t-0=1 → m1: NONE
    """)


def test_each_committed_partition_must_be_owned_since_the_given_epoch() -> None:
    Story().play(
        GIVEN_BACK,
        """
        commit a gen=1 t-0=6 t-1=6 → a: STALE_MEMBER_EPOCH
        commit a gen=1 t-1=6 t-0=6 → a: STALE_MEMBER_EPOCH
        commit a gen=1 t-0=6 → a: NONE
    """,
    )


def test_an_empty_group_keeps_simple_commits() -> None:
    Story().play("""
        topics t=1 →

        hello a t
        a: epoch 1 has t-0
        Stable 1/1: a@1[t-0]

        bye a
        a: epoch -1
        Empty 2/1

        commit stranger gen=0 t-0=1 → stranger: UNKNOWN_MEMBER_ID
        commit stranger gen=2 t-0=1 → stranger: UNKNOWN_MEMBER_ID
        commit t-0=1 → admin: NONE
    """)


@pytest.mark.parametrize(
    ("member", "epoch", "code"),
    [
        (None, -1, ErrorCode.NONE),
        ("", -1, ErrorCode.NONE),
        ("", 0, ErrorCode.UNKNOWN_MEMBER_ID),
        (None, 0, ErrorCode.UNKNOWN_MEMBER_ID),
        (None, 1, ErrorCode.UNKNOWN_MEMBER_ID),
        ("stranger", -1, ErrorCode.UNKNOWN_MEMBER_ID),
        ("a", -1, ErrorCode.STALE_MEMBER_EPOCH),
        ("a", 0, ErrorCode.STALE_MEMBER_EPOCH),
        ("a", 1, ErrorCode.NONE),
        ("a", 2, ErrorCode.STALE_MEMBER_EPOCH),
    ],
)
def test_offsets_are_returned_to_members_in_their_epoch_and_to_simple_consumers(
    member: str | None, epoch: int, code: int
) -> None:
    story = Story()
    story.do("topics", [], {"t": "1"})
    story.do("hello", ["a", "t"], {})
    assert story.machine.fetch_error("g", member, epoch) == code


def test_offsets_of_topics_that_are_read_are_not_deleted() -> None:
    Story().play("""
        topics t=1 u=1 →

        hello a t
        a: epoch 1 has t-0
        Stable 1/1: a@1[t-0]

        commit a gen=1 t-0=1 u-0=1 → a: NONE
        delete-offsets t-0 u-0 → admin: GROUP_SUBSCRIBED_TO_TOPIC NONE
    """)


def test_offsets_of_an_empty_group_expire_and_then_the_group_is_no_more() -> None:
    Story(offsets_retention_ms=60_000).play("""
        topics t=1 u=1 →

        hello a t
        a: epoch 1 has t-0
        Stable 1/1: a@1[t-0]

        commit a gen=1 t-0=1 u-0=1 → a: NONE
        wait 30 →
        alive a → a: epoch 1
        wait 30 →
        expire → broker: 1
        alive a → a: epoch 1
        wait 1 →

        bye a
        a: epoch -1
        Empty 2/1

        expire
        broker: 1
        no group

        commit t-0=2 → admin: NONE
        wait 61 →
        expire → broker: 1
    """)


def test_transactional_commits_are_accepted_from_members_and_from_producers_without_membership() -> None:
    Story().play("""
        topics t=2 →

        hello a t
        a: epoch 1 has t-0 t-1
        Stable 1/1: a@1[t-0 t-1]

        promise by=7 t-0=5
        promise t-0 5
        producer: NONE

        promise a gen=1 by=7 t-0=6
        promise t-0 6
        a: NONE

        promise a by=7 t-0=7 → a: ILLEGAL_GENERATION
        promise stranger by=7 t-0=7 → stranger: UNKNOWN_MEMBER_ID
        promise static=i by=7 t-0=7 → producer: UNKNOWN_MEMBER_ID
        promise gen=0 by=7 t-0=7 → producer: UNKNOWN_MEMBER_ID

        bye a
        a: epoch -1
        Empty 2/1

        promise stranger by=7 t-0=8
        promise t-0 8
        stranger: NONE

        promise stranger gen=0 by=7 t-0=9 → stranger: UNKNOWN_MEMBER_ID
    """)


@pytest.mark.parametrize(
    ("member", "epoch", "version", "code"),
    [
        ("a", 1, 5, ErrorCode.NONE),
        ("a", 2, 5, ErrorCode.ILLEGAL_GENERATION),
        ("a", 2, 6, ErrorCode.STALE_MEMBER_EPOCH),
        ("a", 1, 6, ErrorCode.NONE),
        ("stranger", 1, 5, ErrorCode.UNKNOWN_MEMBER_ID),
        ("", -1, 5, ErrorCode.NONE),  # a producer of before KIP-447
    ],
)
def test_offsets_within_a_transaction_are_for_members_in_their_epoch(
    member: str, epoch: int, version: int, code: int
) -> None:
    story = Story()
    story.do("topics", [], {"t": "1"})
    story.do("hello", ["a", "t"], {})
    offsets = {TopicPartition("t", 0): OffsetAndMetadata(5)}
    event = TransactionalOffsetsCommitted(99, "g", offsets, 1, 0, 0, epoch, member, None, version)
    decision = story.machine.decide(event, 0.0)
    assert [reply.message for reply in decision.replies] == [code]
    assert bool(decision.records) == (code == ErrorCode.NONE)
