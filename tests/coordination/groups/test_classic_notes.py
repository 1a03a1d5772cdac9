"""What a broker's log says of classic groups."""

from __future__ import annotations

from tests.coordination.groups.prelude import two_assigned
from tests.coordination.groups.story import Story


def test_a_log_tells_what_happens_in_a_group() -> None:
    story = Story().play("""
        join a range=t rebalance=20 session=60
        a: MEMBER_ID_REQUIRED m1
        Empty 0

        join m1 range=t rebalance=20 session=60
        because m1 joins
        m1: m1 in 1 by range led by m1 of m1
        CompletingRebalance 1: m1*

        wait 20
        keep generation 2
        because 1 members did not ask for their part in time
        Empty 2
    """)
    assert story.notes == [
        "group g (Empty): a new member is to be called m1, and is asked to join with that id",
        "group g (PreparingRebalance): generation 0 is over: m1 joins",
        "group g: generation 1 begins with 1 members",
        "group g: members that have not synced are out: m1",
        "group g (PreparingRebalance): generation 1 is over: 1 members did not ask for their part in time",
        "group g: nobody is left after generation 2",
    ]


def test_a_log_tells_who_did_not_join() -> None:
    story = Story().play(two_assigned("rebalance=20 session=60"))
    before = len(story.notes)
    story.play("""
        sync m2 gen=2 → m2: has B

        join m2 range=t+u rebalance=20 session=60
        because m2 joins again in Stable
        PreparingRebalance 2: m1* m2+

        wait 20
        m2: m2 in 3 by range led by m2 of m2
        CompletingRebalance 3: m2*
    """)
    assert story.notes[before:] == [
        "group g (PreparingRebalance): generation 2 is over: m2 joins again in Stable",
        "group g: members that have not joined are out: m1",
        "group g: generation 3 begins with 1 members",
    ]
