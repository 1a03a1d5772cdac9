"""Restored state after kill -9 at any point."""

from __future__ import annotations

from tests.coordination.groups.prelude import one_left_alone, one_stable
from tests.coordination.groups.story import Story


def test_a_stable_group_is_restored_with_members_assignments_and_fresh_sessions() -> None:
    Story().play(one_stable(part="all")).play("""
        commit m1 gen=1 t-0=5
        keep t-0 5
        m1: NONE

        wait 9 →
        restart →
        wait 9 →
        beat m1 gen=1 → m1: NONE
        restart →
        sync m1 gen=1 → m1: has all

        wait 10
        keep generation 2
        because the session of m1 timed out
        Empty 2
    """)


def test_a_restart_during_a_join_forgets_the_join() -> None:
    Story().play(one_stable(part="all")).play("""
        join b version=3 range=t
        because m2 joins
        PreparingRebalance 1: m1* m2+

        restart → Stable 1: m1*
        join m2 range=t → m2: UNKNOWN_MEMBER_ID m2
        beat m1 gen=1 → m1: NONE
        join b range=t → b: MEMBER_ID_REQUIRED m3

        join m3 range=t
        because m3 joins
        PreparingRebalance 1: m1* m3+

        join m1 range=t
        m1: m1 in 2 by range led by m1 of m1,m3
        m3: m3 in 2 by range led by m1
        CompletingRebalance 2: m1* m3

        sync m1 gen=2 m1=A m3=B
        keep generation 2 m1=A m3=B
        m1: has A
        Stable 2: m1* m3
    """)


def test_a_restart_before_the_assignment_restores_the_last_generation() -> None:
    Story().play(one_stable(part="all")).play("""
        join b version=3 range=t
        because m2 joins
        PreparingRebalance 1: m1* m2+

        join m1 range=t
        m1: m1 in 2 by range led by m1 of m1,m2
        b: m2 in 2 by range led by m1
        CompletingRebalance 2: m1* m2

        restart → Stable 1: m1*
        sync m1 gen=2 m1=A m2=B → m1: ILLEGAL_GENERATION

        join m1 range=t
        because the leader, m1, joins again in Stable
        m1: m1 in 2 by range led by m1 of m1
        CompletingRebalance 2: m1*

        sync m1 gen=2 m1=all
        keep generation 2 m1=all
        m1: has all
        Stable 2: m1*
    """)


def test_a_static_member_returns_to_its_place_after_a_restart() -> None:
    Story().play("""
        join a static=i version=9 range=t session=30
        because m1, which is instance i, joins
        a: m1 in 1 by range led by m1 of m1
        CompletingRebalance 1: m1*

        sync m1 gen=1 static=i m1=A
        keep generation 1 m1=A
        m1: has A
        Stable 1: m1*

        restart →

        join b static=i version=9 range=t session=30
        keep generation 1 m2=A
        b: m2 in 1 by range led by m2 of m2 keep the assignment
        Stable 1: m2*

        beat m2 gen=1 static=i → m2: NONE
        restart →
        beat m1 gen=1 static=i → m1: FENCED_INSTANCE_ID
        beat m2 gen=1 static=i → m2: NONE
    """)


def test_an_emptied_group_is_restored_empty_in_its_last_generation() -> None:
    Story().play(one_left_alone()).play("""
        restart →

        join b version=3 range=t
        because m2 joins
        b: m2 in 3 by range led by m2 of m2
        CompletingRebalance 3: m2*
    """)
