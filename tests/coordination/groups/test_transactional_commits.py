"""Transactional offset commits: permissions and outcomes."""

from __future__ import annotations

from ottla.model import TopicPartition
from tests.coordination.groups.prelude import one_stable
from tests.coordination.groups.story import Story


def test_a_producer_without_membership_may_commit_in_any_group() -> None:
    Story().play("""
        promise by=7 t-0=5
        promise t-0 5
        producer: NONE
    """)
    Story().play(one_stable()).play("""
        promise by=7 t-0=5
        promise t-0 5
        producer: NONE
    """)


def test_an_empty_group_accepts_transactional_commits_without_a_generation() -> None:
    Story().play("""
        promise m9 by=7 t-0=5
        promise t-0 5
        m9: NONE

        promise static=i by=7 t-0=5
        promise t-0 5
        producer: NONE

        promise m9 gen=0 by=7 t-0=6 → m9: ILLEGAL_GENERATION
        promise gen=0 by=7 t-0=6 → producer: ILLEGAL_GENERATION
        promise m9 gen=0 by=7 t-0=6 version=6 → m9: GROUP_ID_NOT_FOUND
    """)
    Story().play(one_stable()).play("""
        leave m1
        keep generation 2
        because m1 left by LeaveGroup
        m1: NONE
        Empty 2

        promise m1 by=7 t-0=5
        promise t-0 5
        m1: NONE

        promise m1 gen=0 by=7 t-0=6 → m1: UNKNOWN_MEMBER_ID
    """)


def test_a_group_accepts_transactional_commits_of_members_in_their_generation() -> None:
    Story().play(one_stable()).play("""
        promise m1 gen=1 by=7 t-0=5
        promise t-0 5
        m1: NONE

        promise m1 gen=0 by=7 t-0=6 → m1: ILLEGAL_GENERATION
        promise m1 by=7 t-0=6 → m1: ILLEGAL_GENERATION
        promise m2 by=7 t-0=6 → m2: UNKNOWN_MEMBER_ID
        promise static=i by=7 t-0=6 → producer: UNKNOWN_MEMBER_ID
        promise gen=1 by=7 t-0=6 → producer: UNKNOWN_MEMBER_ID
    """)


def test_pending_offsets_apply_if_the_transaction_commits_and_not_if_it_aborts() -> None:
    Story().play("""
        promise by=7 t-0=5 t-1=6
        promise t-0 5
        promise t-1 6
        producer: NONE

        promise by=8 t-0=50 u-0=9
        promise t-0 50
        promise u-0 9
        producer: NONE

        ended abort by=8 →

        ended commit by=7
        t-0 at 5
        t-1 at 6

        ended commit by=8
        t-0 at 5
        t-1 at 6
    """)


def test_a_later_plain_commit_applies_for_either_outcome_of_the_transaction() -> None:
    Story().play("""
        promise by=7 t-0=5 t-1=6
        promise t-0 5
        promise t-1 6
        producer: NONE

        commit t-0=50
        keep t-0 50
        admin: NONE

        ended commit by=7
        t-0 at 50
        t-1 at 6
    """)


def test_pending_offsets_of_a_deleted_topic_are_removed_and_others_stay() -> None:
    Story().play("""
        promise by=7 t-0=5 u-0=6
        promise t-0 5
        promise u-0 6
        producer: NONE

        promise by=8 t-1=7
        promise t-1 7
        producer: NONE

        delete-topic t
        keep t-0 forgotten
        keep t-1 forgotten
        admin: 2

        ended commit by=8 →
        ended commit by=7 → u-0 at 6
    """)


def test_an_offset_pending_in_an_open_transaction_is_reported_as_unstable() -> None:
    pending = Story().play("""
        promise by=7 t-0=5
        promise t-0 5
        producer: NONE

        promise by=8 u-0=5
        promise u-0 5
        producer: NONE
    """).machine.pending  # fmt: skip
    assert len(pending) == 2
    assert pending.holds("g", TopicPartition("t", 0))
    assert pending.holds("g", TopicPartition("u", 0))
    assert not pending.holds("g", TopicPartition("t", 1))
    assert not pending.holds("h", TopicPartition("t", 0))
