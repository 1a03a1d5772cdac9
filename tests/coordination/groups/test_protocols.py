"""A group does what all of its members can do."""

from __future__ import annotations

from tests.coordination.groups.prelude import one_joined
from tests.coordination.groups.story import Story


def test_the_protocol_with_the_most_votes_that_all_support_is_chosen() -> None:
    Story().play(one_joined("rr=t")).play("""
        join b version=3 rr=t sticky=t
        because m2 joins
        PreparingRebalance 1: m1* m2+

        join m1 range=t rr=t
        m1: m1 in 2 by rr led by m1 of m1,m2
        b: m2 in 2 by rr led by m1
        CompletingRebalance 2: m1* m2

        sync m1 gen=2 protocol=rr type=consumer m1=A m2=B
        keep generation 2 m1=A m2=B
        m1: has A
        Stable 2: m1* m2

        sync m2 gen=2 protocol=rr → m2: has B
    """)


def test_the_preferred_protocol_wins_by_votes() -> None:
    Story().play(one_joined("rr=t")).play("""
        join b version=3 rr=t range=t
        because m2 joins
        PreparingRebalance 1: m1* m2+

        join c version=3 rr=t range=t → PreparingRebalance 1: m1* m2+ m3+

        join m1 range=t rr=t
        m1: m1 in 2 by rr led by m1 of m1,m2,m3
        b: m2 in 2 by rr led by m1
        c: m3 in 2 by rr led by m1
        CompletingRebalance 2: m1* m2 m3
    """)


def test_a_member_without_a_common_protocol_is_rejected() -> None:
    Story().play(one_joined()).play("""
        join b version=3 sticky=t → b: INCONSISTENT_GROUP_PROTOCOL
        join c version=3 type=connect range=t → c: INCONSISTENT_GROUP_PROTOCOL
        join d version=3 → d: INCONSISTENT_GROUP_PROTOCOL
        join e type= → e: INCONSISTENT_GROUP_PROTOCOL

        sync m1 gen=1 m1=A
        keep generation 1 m1=A
        m1: has A
        Stable 1: m1*

        join m1 sticky=t → m1: INCONSISTENT_GROUP_PROTOCOL m1
    """)


def test_a_sync_that_names_another_protocol_is_refused() -> None:
    Story().play(one_joined()).play("""
        sync m1 gen=1 protocol=sticky → m1: INCONSISTENT_GROUP_PROTOCOL
        sync m1 gen=1 type=connect → m1: INCONSISTENT_GROUP_PROTOCOL

        sync m1 gen=1 protocol=range type=consumer m1=A
        keep generation 1 m1=A
        m1: has A
        Stable 1: m1*
    """)
