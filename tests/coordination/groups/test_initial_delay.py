"""The first rebalance of a group waits for joining members."""

from __future__ import annotations

from tests.coordination.groups.prelude import one_awaited
from tests.coordination.groups.story import Story


def test_the_first_rebalance_is_delayed_while_members_join_up_to_the_rebalance_timeout() -> None:
    Story(initial_rebalance_delay=3.0).play(one_awaited("rebalance=7")).play("""
        wait 2 →
        join b version=3 range=t rebalance=7 → PreparingRebalance 0: m1*+ m2+
        wait 1 →
        join c version=3 range=t rebalance=7 → PreparingRebalance 0: m1*+ m2+ m3+
        wait 3 →
        join d version=3 range=t rebalance=7 → PreparingRebalance 0: m1*+ m2+ m3+ m4+

        wait 1
        a: m1 in 1 by range led by m1 of m1,m2,m3,m4
        b: m2 in 1 by range led by m1
        c: m3 in 1 by range led by m1
        d: m4 in 1 by range led by m1
        CompletingRebalance 1: m1* m2 m3 m4
    """)


def test_the_first_rebalance_ends_after_the_delay_without_new_members() -> None:
    Story(initial_rebalance_delay=3.0).play(one_awaited()).play("""
        wait 2 →

        wait 1
        a: m1 in 1 by range led by m1 of m1
        CompletingRebalance 1: m1*
    """)


def test_a_group_that_has_emptied_has_a_first_rebalance_again() -> None:
    Story(initial_rebalance_delay=3.0).play(one_awaited()).play("""
        wait 3
        a: m1 in 1 by range led by m1 of m1
        CompletingRebalance 1: m1*

        sync m1 gen=1 m1=A
        keep generation 1 m1=A
        m1: has A
        Stable 1: m1*

        leave m1
        keep generation 2
        because m1 left by LeaveGroup
        m1: NONE
        Empty 2

        join b version=3 range=t
        because m2 joins
        PreparingRebalance 2: m2*+

        wait 3
        b: m2 in 3 by range led by m2 of m2
        CompletingRebalance 3: m2*
    """)


def test_a_member_that_leaves_during_the_delay_is_not_waited_for() -> None:
    Story(initial_rebalance_delay=3.0).play(one_awaited()).play("""
        hangup m1 → PreparingRebalance 0

        wait 3
        keep generation 1
        Empty 1
    """)


def test_a_member_extends_the_delay_only_once() -> None:
    Story(initial_rebalance_delay=3.0).play(one_awaited()).play("""
        wait 2 →
        join b version=3 range=t → PreparingRebalance 0: m1*+ m2+
        wait 1 →
        wait 2 →

        wait 1
        a: m1 in 1 by range led by m1 of m1,m2
        b: m2 in 1 by range led by m1
        CompletingRebalance 1: m1* m2
    """)


def test_a_delay_that_is_longer_than_a_rebalance_may_take_is_not_put_off() -> None:
    Story(initial_rebalance_delay=3.0).play(one_awaited("rebalance=2")).play("""
        wait 2 →
        join b version=3 range=t rebalance=2 → PreparingRebalance 0: m1*+ m2+

        wait 1
        a: m1 in 1 by range led by m1 of m1,m2
        b: m2 in 1 by range led by m1
        CompletingRebalance 1: m1* m2
    """)
