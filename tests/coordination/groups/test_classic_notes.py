"""Log lines about classic groups."""

from __future__ import annotations

from tests.coordination.groups.prelude import two_assigned
from tests.coordination.groups.story import Story


def test_the_log_reports_the_events_of_a_group() -> None:
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
        because 1 members did not send SyncGroup in time
        Empty 2
    """)
    assert story.notes == [
        "group g (Empty): a new member without an id was assigned m1, and has to join again with it",
        "group g (PreparingRebalance): rebalance of generation 0: m1 joins",
        "group g: generation 1 started with 1 members",
        "group g: removed members that have not synced in time: m1",
        "group g (PreparingRebalance): rebalance of generation 1: 1 members did not send SyncGroup in time",
        "group g: generation 2 is empty",
    ]


def test_the_log_names_members_that_did_not_join() -> None:
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
        "group g (PreparingRebalance): rebalance of generation 2: m2 joins again in Stable",
        "group g: removed members that have not joined in time: m1",
        "group g: generation 3 started with 1 members",
    ]
