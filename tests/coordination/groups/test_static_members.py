"""Members with names of their own (KIP-345, KIP-814)."""

from __future__ import annotations

from tests.coordination.groups.prelude import one_stable, static_joined, static_stable, two_static_joining
from tests.coordination.groups.story import Story


def test_a_returning_static_member_keeps_its_assignment_and_its_old_id_is_fenced() -> None:
    Story().play(two_static_joining("version=9")).play("""
        join m1 static=i version=9 range=t
        m1: m1 in 2 by range led by m1 of m1,m2
        b: m2 in 2 by range led by m1
        CompletingRebalance 2: m1* m2

        sync m1 gen=2 static=i m1=A m2=B
        keep generation 2 m1=A m2=B
        m1: has A
        Stable 2: m1* m2

        sync m2 gen=2 static=j → m2: has B

        join b2 static=j version=9 range=t
        keep generation 2 m1=A m3=B
        b2: m3 in 2 by range led by m1
        Stable 2: m1* m3

        beat m2 gen=2 static=j → m2: FENCED_INSTANCE_ID
        commit m2 gen=2 static=j t-0=1 → m2: FENCED_INSTANCE_ID
        sync m3 gen=2 static=j → m3: has B
        beat m3 gen=2 static=j → m3: NONE
    """)


def test_a_returning_static_leader_skips_the_assignment_or_is_not_leader_in_old_versions() -> None:
    Story().play(static_stable("version=9")).play("""
        join a2 static=i version=9 range=t
        keep generation 1 m2=A
        a2: m2 in 1 by range led by m2 of m2 keep the assignment
        Stable 1: m2*

        join a3 static=i version=5 range=t
        keep generation 1 m3=A
        a3: m3 in 1 by range led by m2
        Stable 1: m3*

        sync m3 gen=1 static=i → m3: has A

        join m3 static=i version=9 range=t
        because the leader, m3, joins again in Stable
        m3: m3 in 2 by range led by m3 of m3
        CompletingRebalance 2: m3*
    """)


def test_a_returning_static_member_with_other_topics_or_protocols_starts_a_rebalance() -> None:
    Story().play(static_stable("sticky=t")).play("""
        join b static=i range=t+u sticky=t
        because m2, which is instance i, joins again
        b: m2 in 2 by range led by m2 of m2
        CompletingRebalance 2: m2*

        sync m2 gen=2 static=i m2=A
        keep generation 2 m2=A
        m2: has A
        Stable 2: m2*

        join c static=i sticky=t
        because m3, which is instance i, joins again
        c: m3 in 3 by sticky led by m3 of m3
        CompletingRebalance 3: m3*
    """)


def test_a_static_member_returning_during_assignment_starts_a_rebalance() -> None:
    Story().play(static_joined()).play("""
        join b static=j range=t
        because m2, which is instance j, joins
        PreparingRebalance 1: m1* m2+

        join m1 static=i range=t
        m1: m1 in 2 by range led by m1 of m1,m2
        b: m2 in 2 by range led by m1
        CompletingRebalance 2: m1* m2

        sync m2 gen=2 static=j → CompletingRebalance 2: m1* m2~

        join b2 static=j range=t
        because m3, which is instance j, joins again
        m2: FENCED_INSTANCE_ID
        PreparingRebalance 2: m1* m3+

        join m1 static=i range=t
        m1: m1 in 3 by range led by m1 of m1,m3
        b2: m3 in 3 by range led by m1
        CompletingRebalance 3: m1* m3
    """)


def test_a_static_member_returning_during_a_join_takes_its_own_place() -> None:
    Story().play(static_stable()).play("""
        join b version=3 range=t
        because m2 joins
        PreparingRebalance 1: m1* m2+

        join a2 static=i range=t
        a2: m3 in 2 by range led by m3 of m3,m2
        b: m2 in 2 by range led by m3
        CompletingRebalance 2: m3* m2
    """)


def test_a_second_member_with_the_same_instance_id_fences_the_waiting_one() -> None:
    Story().play(one_stable()).play("""
        join b static=i range=t
        because m2, which is instance i, joins
        PreparingRebalance 1: m1* m2+

        join b2 static=i range=t
        b: FENCED_INSTANCE_ID m2
        PreparingRebalance 1: m1* m3+

        join m1 range=t
        m1: m1 in 2 by range led by m1 of m1,m3
        b2: m3 in 2 by range led by m1
        CompletingRebalance 2: m1* m3
    """)


def test_a_static_member_keeps_its_place_through_a_rebalance_that_it_misses() -> None:
    Story().play(two_static_joining("session=60 rebalance=20")).play("""
        wait 20
        b: m2 in 2 by range led by m2 of m1,m2
        CompletingRebalance 2: m1 m2*

        sync m2 gen=2 static=j m1=A m2=B
        keep generation 2 m1=A m2=B
        m2: has B
        Stable 2: m1 m2*

        join a2 static=i range=t session=60 rebalance=20
        keep generation 2 m3=A m2=B
        a2: m3 in 2 by range led by m2
        Stable 2: m3 m2*
    """)


def test_a_rebalance_that_no_static_member_joins_ends_with_their_sessions() -> None:
    Story().play(static_stable("session=30 rebalance=20")).play("""
        join b version=3 range=t session=10 rebalance=20
        because m2 joins
        PreparingRebalance 1: m1* m2+

        hangup m2 → PreparingRebalance 1: m1*
        wait 20 →

        wait 10
        keep generation 2
        Empty 2
    """)


def test_a_static_member_is_removed_only_by_its_own_instance_id() -> None:
    Story().play(static_stable()).play("""
        leave m1 static=k → m1: UNKNOWN_MEMBER_ID
        leave static=k → k: UNKNOWN_MEMBER_ID

        leave static=i
        keep generation 2
        because m1 left by LeaveGroup
        i: NONE
        Empty 2
    """)


def test_a_rebalance_without_joins_is_extended_once() -> None:
    Story().play(static_joined("session=1000 rebalance=20")).play("""
        join b static=j range=t session=1000 rebalance=20
        because m2, which is instance j, joins
        PreparingRebalance 1: m1* m2+

        join m1 static=i range=t session=1000 rebalance=20
        m1: m1 in 2 by range led by m1 of m1,m2
        b: m2 in 2 by range led by m1
        CompletingRebalance 2: m1* m2

        sync m1 gen=2 static=i m1=A m2=B
        keep generation 2 m1=A m2=B
        m1: has A
        Stable 2: m1* m2

        sync m2 gen=2 static=j → m2: has B

        join c version=3 range=t rebalance=20
        because m3 joins
        PreparingRebalance 2: m1* m2 m3+

        hangup m3 → PreparingRebalance 2: m1* m2
        wait 25 →
        join m2 static=j range=t session=1000 rebalance=20 → PreparingRebalance 2: m1* m2+
        wait 14 →

        wait 1
        m2: m2 in 3 by range led by m2 of m1,m2
        CompletingRebalance 3: m1 m2*
    """)
