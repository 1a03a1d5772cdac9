"""Deletion and expiry of offsets and groups."""

from __future__ import annotations

from tests.coordination.groups.prelude import one_stable
from tests.coordination.groups.story import Story


def test_an_offset_is_deleted_unless_members_read_its_topic() -> None:
    Story().play(one_stable()).play("""
        commit m1 gen=1 t-0=5 u-0=6
        keep t-0 5
        keep u-0 6
        m1: NONE

        delete-offsets t-0 u-0 u-1
        keep u-0 forgotten
        admin: GROUP_SUBSCRIBED_TO_TOPIC NONE NONE

        leave m1
        keep generation 2
        because m1 left by LeaveGroup
        m1: NONE
        Empty 2

        delete-offsets t-0
        keep t-0 forgotten
        admin: NONE

        delete-offsets t-0 → admin: NONE
    """)


def test_the_subscriptions_of_a_non_consumer_group_are_unknown() -> None:
    Story().play("""
        join a version=3 type=connect x=t
        because m1 joins
        a: m1 in 1 by x led by m1 of m1
        CompletingRebalance 1: m1*

        delete-offsets t-0 → admin: NON_EMPTY_GROUP
    """)


def test_offsets_of_an_empty_group_of_any_type_may_be_deleted() -> None:
    Story().play("""
        join a version=3 type=connect x=t
        because m1 joins
        a: m1 in 1 by x led by m1 of m1
        CompletingRebalance 1: m1*

        sync m1 gen=1 m1=A
        keep generation 1 m1=A
        m1: has A
        Stable 1: m1*

        commit m1 gen=1 t-0=5
        keep t-0 5
        m1: NONE

        leave m1
        keep generation 2
        because m1 left by LeaveGroup
        m1: NONE
        Empty 2

        delete-offsets t-0
        keep t-0 forgotten
        admin: NONE
    """)


def test_an_unknown_group_has_no_offsets_to_delete() -> None:
    Story().play("""
        delete-offsets t-0 → admin: GROUP_ID_NOT_FOUND
        delete g → admin: GROUP_ID_NOT_FOUND
    """)


def test_a_group_without_offsets_is_kept_until_the_next_expiry_check() -> None:
    Story(offsets_retention_ms=100_000).play("""
        commit t-0=5
        keep t-0 5
        admin: NONE

        delete-offsets t-0
        keep t-0 forgotten
        admin: NONE

        delete-offsets t-0 → admin: NONE
        restart →
        delete-offsets t-0 → admin: NONE

        expire
        keep g forgotten
        broker: 0

        delete-offsets t-0 → admin: GROUP_ID_NOT_FOUND
        restart →
        delete-offsets t-0 → admin: GROUP_ID_NOT_FOUND
    """)


def test_a_group_without_offsets_can_be_deleted_and_accepts_new_commits() -> None:
    Story().play("""
        commit t-0=5
        keep t-0 5
        admin: NONE

        delete-offsets t-0
        keep t-0 forgotten
        admin: NONE

        delete g
        keep g forgotten
        admin: NONE

        delete g → admin: GROUP_ID_NOT_FOUND

        commit t-0=6
        keep t-0 6
        admin: NONE

        delete-offsets t-0
        keep t-0 forgotten
        admin: NONE
    """)


def test_a_group_is_deleted_with_its_offsets_once_it_has_no_members() -> None:
    Story().play(one_stable()).play("""
        commit m1 gen=1 t-0=5
        keep t-0 5
        m1: NONE

        delete g → admin: NON_EMPTY_GROUP

        leave m1
        keep generation 2
        because m1 left by LeaveGroup
        m1: NONE
        Empty 2

        delete g g
        keep t-0 forgotten
        keep g forgotten
        admin: NONE NONE
        no group

        restart →
    """)


def test_offsets_are_deleted_with_their_topic() -> None:
    Story().play("""
        commit t-0=5 u-0=6
        keep t-0 5
        keep u-0 6
        admin: NONE

        delete-topic t
        keep t-0 forgotten
        admin: 1

        restart →

        delete-topic u
        keep u-0 forgotten
        admin: 1
    """)


def test_offsets_without_members_expire_by_their_commit() -> None:
    Story(offsets_retention_ms=100_000).play("""
        commit t-0=5
        keep t-0 5
        admin: NONE

        wait 50 →

        commit t-1=6
        keep t-1 6
        admin: NONE

        wait 49 →
        expire → broker: 0
        wait 1 →

        expire
        keep t-0 forgotten
        broker: 1

        wait 50 →

        expire
        keep t-1 forgotten
        keep g forgotten
        broker: 1
    """)


def test_a_commit_may_set_its_retention() -> None:
    Story(offsets_retention_ms=100_000).play("""
        commit t-0=5 retention=10
        keep t-0 5
        admin: NONE

        wait 9 →
        expire → broker: 0
        restart →
        wait 1 →

        expire
        keep t-0 forgotten
        keep g forgotten
        broker: 1
    """)


def test_offsets_expire_when_the_group_has_been_empty_for_long_enough_and_the_group_with_them() -> None:
    Story(offsets_retention_ms=100_000).play(one_stable("session=200")).play("""
        commit m1 gen=1 t-0=5
        keep t-0 5
        m1: NONE

        wait 150 →
        expire → broker: 0

        leave m1
        keep generation 2
        because m1 left by LeaveGroup
        m1: NONE
        Empty 2

        wait 99 →
        expire → broker: 0
        restart →
        wait 1 →

        expire
        keep t-0 forgotten
        keep g forgotten
        broker: 1
        no group
    """)


def test_offsets_of_topics_that_members_do_not_read_any_more_expire() -> None:
    Story(offsets_retention_ms=100_000).play(one_stable("session=200")).play("""
        commit m1 gen=1 t-0=5 u-0=6
        keep t-0 5
        keep u-0 6
        m1: NONE

        wait 100 →

        expire
        keep u-0 forgotten
        broker: 1
    """)


def test_nothing_expires_while_a_group_rebalances() -> None:
    Story(offsets_retention_ms=100_000).play(one_stable("session=200 rebalance=200")).play("""
        commit m1 gen=1 u-0=6
        keep u-0 6
        m1: NONE

        join b version=3 range=t session=200 rebalance=200
        because m2 joins
        PreparingRebalance 1: m1* m2+

        wait 150 →
        expire → broker: 0
    """)
