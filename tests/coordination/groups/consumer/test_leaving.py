"""Members that leave, permanently or temporarily, the log lines about it, and timers of removed members."""

from __future__ import annotations

from functools import partial

from ottla.coordination.groups.events import TimerExpired, TimerName
from tests.coordination.groups.consumer.prelude import CLASSIC_AND_THIRD
from tests.coordination.groups.consumer.story import Story

ALONE = """
    topics t=2 →

    hello b t static=i rebalance=10
    b: epoch 1 has t-0 t-1
    Stable 1/1: b@1[t-0 t-1]
"""


def test_a_temporarily_leaving_static_member_need_not_revoke_partitions() -> None:
    Story().play(
        ALONE,
        """
        hello a t
        a: epoch 2 has nothing
        Reconciling 2/2: b@1[t-0 t-1] a@2[?]

        alive b static=i
        b: epoch 1 has t-0
        Reconciling 2/2: b@1[t-0 -t-1] a@2[?]

        bye b for-a-while static=i
        b: epoch -2
        Reconciling 2/2: b@-2[t-0] a@2[?]

        wait 11 →
    """,
    )


def test_a_member_must_revoke_within_its_rebalance_timeout_after_a_restart_too() -> None:
    story = Story().play(
        ALONE,
        """
        hello a t
        a: epoch 2 has nothing
        Reconciling 2/2: b@1[t-0 t-1] a@2[?]

        wait 3 →

        alive b static=i
        b: epoch 1 has t-0
        Reconciling 2/2: b@1[t-0 -t-1] a@2[?]
    """,
    )
    assert story.alarms[TimerName("revocation", "g", "b")] == 13.0
    story.play("restart →")
    assert {(name.kind, name.member): at for name, at in story.alarms.items()} == {
        ("session", "b"): 48.0,
        ("session", "a"): 48.0,
        ("revocation", "b"): 13.0,
    }
    story.play("wait 11 → Assigning 3/2: a@2[?]")


def test_after_a_restart_a_classic_member_need_not_report_its_partitions() -> None:
    story = Story().play("""
        topics t=2 →

        hello b t
        b: epoch 1 has t-0 t-1
        Stable 1/1: b@1[t-0 t-1]

        bye b
        b: epoch -1
        Empty 2/1

        join x cooperative=t version=3
        because m1 joins
        x: m1 in 1 by cooperative led by m1 of m1
        CompletingRebalance 1: m1*

        sync m1 gen=1 m1=t-0,t-1
        m1: has t-0 t-1
        Stable 1: m1*

        hello c t
        c: epoch 2 has nothing
        Reconciling 2/2: m1~@1[t-0 t-1] c@2[?]

        join m1 cooperative=t owned=t-0,t-1 version=3
        m1: m1 in 1 by cooperative
        Reconciling 2/2: m1~@1[t-0 -t-1] c@2[?]

        restart →
    """)
    assert {(name.kind, name.member) for name in story.alarms} == {("session", "m1"), ("session", "c")}


def test_a_classic_members_rebalance_timeout_starts_when_it_is_notified() -> None:
    story = Story().play(
        CLASSIC_AND_THIRD,
        """
        wait 4 →
        beat m1 gen=2 → m1: REBALANCE_IN_PROGRESS
        wait 4 →
        beat m1 gen=2 → m1: REBALANCE_IN_PROGRESS
    """,
    )
    assert story.alarms[TimerName("rejoin", "g", "m1")] == 24.0


def test_the_log_reports_joins_temporary_leaves_and_removals() -> None:
    story = Story().play(
        ALONE,
        """
        bye b for-a-while static=i
        b: epoch -2
        Reconciling 1/1: b@-2[t-0 t-1]

        wait 46 → Empty 2/1
    """,
    )
    assert story.notes == [
        "Member b with instance id i joined consumer group g with the consumer protocol.",
        "Consumer group g is in epoch 1 (member b has changed its subscription).",
        "Consumer group g has a target assignment for epoch 1: 1 members, assignor uniform.",
        "Member b of consumer group g is STABLE in epoch 1 with 2 partitions.",
        "Static member b with instance id i temporarily left consumer group g.",
        "Member b was removed from consumer group g: the member session expired.",
        "Consumer group g is in epoch 2 (member b is removed: the member session expired).",
    ]


def test_a_timer_without_a_member_or_a_reason_changes_nothing() -> None:
    story = Story().play(ALONE)
    for name in (TimerName("session", "g", "stranger"), TimerName("join", "g", "b"), TimerName("sync", "g", "")):
        story.send_event("", partial(TimerExpired, name=name, wall_ms=0))
    assert story.shown == "Stable 1/1: b@1[t-0 t-1]"
