"""Sessions of members: a member is alive while it sends requests."""

from __future__ import annotations

from ottla.coordination.groups.classic.decision import JOIN, SYNC
from ottla.coordination.groups.events import TimerExpired, TimerName
from tests.coordination.groups.prelude import one_stable, two_assigned, two_joined, two_joining, two_stable
from tests.coordination.groups.story import Story


def test_a_silent_member_is_removed_and_its_partitions_are_reassigned() -> None:
    Story().play(two_stable()).play("""
        wait 6 →
        beat m1 gen=2 → m1: NONE

        wait 4
        because the session of m2 timed out
        PreparingRebalance 2: m1*

        beat m1 gen=2 → m1: REBALANCE_IN_PROGRESS

        join m1 range=t
        m1: m1 in 3 by range led by m1 of m1
        CompletingRebalance 3: m1*

        sync m1 gen=3 m1=all
        keep generation 3 m1=all
        m1: has all
        Stable 3: m1*

        beat m2 gen=2 → m2: UNKNOWN_MEMBER_ID
    """)


def test_a_member_that_waits_for_the_others_needs_no_heartbeat() -> None:
    Story().play(one_stable("session=60")).play("""
        join b version=3 range=t session=6
        because m2 joins
        PreparingRebalance 1: m1* m2+

        wait 50 →

        join m1 range=t
        m1: m1 in 2 by range led by m1 of m1,m2
        b: m2 in 2 by range led by m1
        CompletingRebalance 2: m1* m2
    """)


def test_a_new_member_that_is_unreachable_is_removed_after_five_minutes() -> None:
    Story().play(one_stable("session=1000 rebalance=1000")).play("""
        join b version=3 range=t rebalance=1000
        because m2 joins
        PreparingRebalance 1: m1* m2+

        wait 299 →

        wait 1
        b: UNKNOWN_MEMBER_ID m2
        PreparingRebalance 1: m1*
    """)


def test_a_member_that_does_not_fetch_its_assignment_is_removed() -> None:
    Story().play(two_assigned("rebalance=20 session=60")).play("""
        wait 20
        because 1 members did not send SyncGroup in time
        PreparingRebalance 2: m1*
    """)


def test_a_leader_that_does_not_assign_is_removed_and_waiting_members_rejoin() -> None:
    Story().play(two_joined("rebalance=20 session=60")).play("""
        sync m2 gen=2 → CompletingRebalance 2: m1* m2~

        wait 20
        because 1 members did not send SyncGroup in time
        m2: REBALANCE_IN_PROGRESS
        PreparingRebalance 2: m2*
    """)


def test_a_member_that_leaves_is_not_waited_for() -> None:
    Story().play(two_stable()).play("""
        leave m1
        because m1 left by LeaveGroup
        m1: NONE
        PreparingRebalance 2: m2*

        beat m2 gen=2 → m2: REBALANCE_IN_PROGRESS

        join m2 range=t
        m2: m2 in 3 by range led by m2 of m2
        CompletingRebalance 3: m2*

        sync m2 gen=3 m2=all
        keep generation 3 m2=all
        m2: has all
        Stable 3: m2*

        leave m2
        keep generation 4
        because m2 left by LeaveGroup
        m2: NONE
        Empty 4

        beat m2 gen=3 → m2: UNKNOWN_MEMBER_ID
        leave m2 → m2: UNKNOWN_MEMBER_ID
    """)


def test_several_leave_at_once_and_each_has_an_answer() -> None:
    Story().play(two_joining()).play("""
        join c version=3 range=t → PreparingRebalance 1: m1* m2+ m3+

        join m1 range=t
        m1: m1 in 2 by range led by m1 of m1,m2,m3
        b: m2 in 2 by range led by m1
        c: m3 in 2 by range led by m1
        CompletingRebalance 2: m1* m2 m3

        sync m1 gen=2 m1=A m2=B m3=C
        keep generation 2 m1=A m2=B m3=C
        m1: has A
        Stable 2: m1* m2 m3

        sync m2 gen=2 → m2: has B
        sync m3 gen=2 → m3: has C

        leave m2 stranger m3
        because m2, m3 left by LeaveGroup
        m2 stranger m3: NONE UNKNOWN_MEMBER_ID NONE
        PreparingRebalance 2: m1*
    """)


def test_a_member_id_may_leave_without_a_join() -> None:
    Story().play("""
        join a range=t
        a: MEMBER_ID_REQUIRED m1
        Empty 0

        leave m1
        m1: NONE
        no group

        join m1 range=t → m1: UNKNOWN_MEMBER_ID m1
    """)


def test_a_member_that_disconnects_before_its_first_response_is_removed_at_once() -> None:
    Story().play(one_stable()).play("""
        join b version=3 range=t
        because m2 joins
        PreparingRebalance 1: m1* m2+

        hangup m2 → PreparingRebalance 1: m1*

        join m1 range=t
        m1: m1 in 2 by range led by m1 of m1
        CompletingRebalance 2: m1*
    """)


def test_a_member_that_disconnects_during_a_rejoin_has_its_session_to_return() -> None:
    Story().play(two_stable("session=30")).play("""
        join m2 range=u session=30
        because m2 joins again in Stable
        PreparingRebalance 2: m1* m2+

        hangup m2 → PreparingRebalance 2: m1* m2
        wait 29 →
        beat m1 gen=2 → m1: REBALANCE_IN_PROGRESS
        wait 1 → PreparingRebalance 2: m1*
    """)


def test_a_member_that_disconnects_before_its_assignment_has_its_session_to_return() -> None:
    Story().play(two_joined("session=30")).play("""
        sync m2 gen=2 → CompletingRebalance 2: m1* m2~
        hangup m2 → CompletingRebalance 2: m1* m2

        sync m1 gen=2 m1=A m2=B
        keep generation 2 m1=A m2=B
        m1: has A
        Stable 2: m1* m2

        sync m2 gen=2 → m2: has B
    """)


def test_the_session_of_a_waiting_member_starts_with_the_error_response() -> None:
    Story().play(two_joined()).play("""
        sync m2 gen=2 → CompletingRebalance 2: m1* m2~
        wait 8 →

        join m1 range=t+u
        because m1 joins again in CompletingRebalance
        m2: REBALANCE_IN_PROGRESS
        PreparingRebalance 2: m1*+ m2

        wait 9 →

        wait 1
        m1: m1 in 3 by range led by m1 of m1
        CompletingRebalance 3: m1*
    """)


def test_a_member_waiting_in_a_sync_needs_no_heartbeat() -> None:
    Story().play(two_joined("session=10")).play("""
        sync m2 gen=2 → CompletingRebalance 2: m1* m2~
        wait 9 →
        beat m1 gen=2 → m1: NONE
        wait 9 →

        sync m1 gen=2 m1=A m2=B
        keep generation 2 m1=A m2=B
        m1: has A
        m2: has B
        Stable 2: m1* m2
    """)


def test_after_a_restart_no_member_is_new() -> None:
    Story().play(two_stable()).play("""
        restart →

        join m2 range=t+u
        because m2 joins again in Stable
        PreparingRebalance 2: m1* m2+

        hangup m2 → PreparingRebalance 2: m1* m2
    """)


def test_a_late_timer_changes_nothing() -> None:
    story = Story().play(two_stable())
    for kind in (JOIN, SYNC):
        story.happened = []
        story.send_event("", lambda ticket, kind=kind: TimerExpired(ticket, TimerName(kind, "g", ""), story.wall_ms))  # type: ignore[misc]
        assert not story.happened


def test_an_emptied_group_has_no_subscriptions_and_no_protocol() -> None:
    story = Story().play(one_stable())
    assert story.group.can_read("t")
    story.play("""
        leave m1
        keep generation 2
        because m1 left by LeaveGroup
        m1: NONE
        Empty 2
    """)
    assert not story.group.can_read("t")
    assert story.group.protocol_name is None
