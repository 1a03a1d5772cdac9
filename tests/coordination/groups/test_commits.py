"""Commits of offsets: permissions and stored values."""

from __future__ import annotations

from tests.coordination.groups.prelude import one_joined, one_stable
from tests.coordination.groups.story import Story


def test_an_empty_group_accepts_commits_without_a_generation() -> None:
    Story().play("""
        commit t-0=5
        keep t-0 5
        admin: NONE

        commit m9 t-0=6
        keep t-0 6
        m9: NONE

        commit gen=3 t-0=7 → admin: UNKNOWN_MEMBER_ID
        commit gen=0 t-0=7 → admin: UNKNOWN_MEMBER_ID
    """)
    Story().play(one_stable()).play("""
        leave m1
        keep generation 2
        because m1 left by LeaveGroup
        m1: NONE
        Empty 2

        commit t-0=5
        keep t-0 5
        admin: NONE

        commit m1 t-0=6
        keep t-0 6
        m1: NONE

        commit gen=0 t-0=7 → admin: UNKNOWN_MEMBER_ID
        commit m1 gen=2 t-0=7 → m1: UNKNOWN_MEMBER_ID
    """)


def test_a_group_accepts_commits_of_its_members() -> None:
    Story().play(one_joined()).play("""
        commit t-0=7 → admin: UNKNOWN_MEMBER_ID
        commit m1 gen=1 t-0=7 → m1: REBALANCE_IN_PROGRESS

        sync m1 gen=1 m1=A
        keep generation 1 m1=A
        m1: has A
        Stable 1: m1*

        commit m1 gen=1 t-0=8
        keep t-0 8
        m1: NONE

        commit m1 gen=0 t-0=9 → m1: ILLEGAL_GENERATION
        commit m2 gen=1 t-0=9 → m2: UNKNOWN_MEMBER_ID
        commit m2 gen=0 t-0=9 → m2: UNKNOWN_MEMBER_ID
        commit m1 t-0=9 → m1: ILLEGAL_GENERATION
        commit m1 gen=2 t-0=9 → m1: ILLEGAL_GENERATION
        commit static=i t-0=9 → admin: UNKNOWN_MEMBER_ID
        commit t-0=9 → admin: UNKNOWN_MEMBER_ID
    """)


def test_a_member_that_has_to_rejoin_may_commit_and_thereby_renews_its_session() -> None:
    Story().play(one_stable()).play("""
        join b version=3 range=t session=60
        because m2 joins
        PreparingRebalance 1: m1* m2+

        wait 9 →

        commit m1 gen=1 t-0=10
        keep t-0 10
        m1: NONE

        wait 9 →
        beat m1 gen=1 → m1: REBALANCE_IN_PROGRESS

        wait 10
        b: m2 in 2 by range led by m2 of m2
        CompletingRebalance 2: m2*
    """)
