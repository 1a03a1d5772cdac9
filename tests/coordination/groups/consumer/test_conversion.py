"""State that a group keeps or drops when it changes the protocol."""

from __future__ import annotations

import pytest

from ottla.protocol.messages.consumer_protocol import ConsumerProtocolSubscription, encode
from tests.coordination.groups.consumer.story import Story

ONE_ASSIGNED = """
    topics t=2 →

    join a range=t version=3
    because m1 joins
    a: m1 in 1 by range led by m1 of m1
    CompletingRebalance 1: m1*

    sync m1 gen=1 m1=t-0,t-1
    m1: has t-0 t-1
    Stable 1: m1*
"""


def waited_for(story: Story) -> set[tuple[str, str]]:
    return {(name.kind, name.member) for name in story.alarms}


def test_a_migrated_member_has_a_fresh_session() -> None:
    Story().play(
        ONE_ASSIGNED,
        """
        wait 6 →

        hello b t
        b: epoch 2 has nothing
        Reconciling 2/2: m1~@1[t-0 t-1] b@2[?]

        wait 9 →
        wait 2 → Assigning 3/2: b@2[?]
    """,
    )


def test_an_id_without_a_join_is_not_waited_for() -> None:
    story = Story().play(
        ONE_ASSIGNED,
        """
        join x range=t → x: MEMBER_ID_REQUIRED m2

        hello b t
        b: epoch 2 has nothing
        Reconciling 2/2: m1~@1[t-0 t-1] b@2[?]
    """,
    )
    assert waited_for(story) == {("session", "m1"), ("session", "b")}


def test_members_do_not_wait_for_the_end_of_a_rebalance() -> None:
    joining = Story(initial_rebalance_delay=3.0).play("""
        topics t=1 →

        join a range=t version=3
        because m1 joins
        PreparingRebalance 0: m1*+
    """)
    assert ("join", "") in waited_for(joining)
    joining.play("""
        hello b t
        a: REBALANCE_IN_PROGRESS m1
        b: epoch 1 has t-0
        Reconciling 1/1: m1~@0[] b@1[t-0]
    """)
    assert waited_for(joining) == {("session", "m1"), ("session", "b")}


def test_a_member_waiting_for_its_assignment_is_sent_into_the_other_kind_of_group() -> None:
    story = Story().play("""
        topics t=2 →

        join a range=t version=3
        because m1 joins
        a: m1 in 1 by range led by m1 of m1
        CompletingRebalance 1: m1*

        join b range=t version=3
        because m2 joins
        PreparingRebalance 1: m1* m2+

        join m1 range=t version=3
        m1: m1 in 2 by range led by m1 of m1,m2
        b: m2 in 2 by range led by m1
        CompletingRebalance 2: m1* m2

        sync m2 gen=2 → CompletingRebalance 2: m1* m2~
    """)
    assert ("sync", "") in waited_for(story)
    story.do("hello", ["c", "t"], {})
    assert "m2: REBALANCE_IN_PROGRESS" in story.happened
    assert not {kind for kind, _ in waited_for(story)} & {"join", "sync"}


def test_subscriptions_are_read_from_the_protocol_shared_by_all_members() -> None:
    story = Story().play("""
        topics t=1 u=1 →

        join a range=t roundrobin=u version=3
        because m1 joins
        a: m1 in 1 by range led by m1 of m1
        CompletingRebalance 1: m1*

        join b roundrobin=u version=3
        because m2 joins
        PreparingRebalance 1: m1* m2+

        join m1 range=t roundrobin=u version=3
        m1: m1 in 2 by roundrobin led by m1 of m1,m2
        b: m2 in 2 by roundrobin led by m1
        CompletingRebalance 2: m1* m2
    """)
    story.do("hello", ["c", "t"], {})
    assert {name: set(member.topics) for name, member in story.consumers.members.items()} == {
        "m1": {"u"},
        "m2": {"u"},
        "c": {"t"},
    }


def test_a_group_with_unreadable_subscriptions_is_not_migrated() -> None:
    story = Story()
    story.subscription = lambda topics, options: b"\xff"  # type: ignore[method-assign]
    story.play("""
        topics t=1 →

        join a range=t version=3
        because m1 joins
        a: m1 in 1 by range led by m1 of m1
        CompletingRebalance 1: m1*

        hello b t → b: GROUP_ID_NOT_FOUND group g stays with the classic protocol: the subscription of a member is malformed
    """)


@pytest.mark.parametrize(("room", "goes_back"), [(1, False), (2, True)])
def test_a_group_is_downgraded_if_a_classic_group_may_have_as_many_members(room: int, goes_back: bool) -> None:
    story = Story(max_size=room)
    story.do("topics", [], {"t": "1"})
    story.do("hello", ["b", "t"], {})
    for each in "xy":
        story.do("join", [each], {"range": "t", "version": "3"})
    story.do("bye", ["b"], {})
    assert ("g" in story.machine.groups) == goes_back
    assert ("g" not in story.machine.consumers.groups) == goes_back


def test_racks_are_migrated_and_kept_if_absent_from_a_heartbeat() -> None:
    story, rack = Story(), "q"
    story.subscription = lambda topics, options: encode(  # type: ignore[method-assign]
        ConsumerProtocolSubscription([topics], rack_id=rack or None), 3
    )

    def racks() -> list[str | None]:
        return [member.rack_id for member in story.consumers.members.values()]

    story.do("topics", [], {"t": "1"})
    story.do("join", ["a"], {"range": "t", "version": "3"})
    story.do("hello", ["b", "t"], {"rack": "r"})
    assert racks() == ["q", "r"]
    rack = ""
    story.do("alive", ["b"], {})
    story.do("join", ["m1"], {"range": "t", "version": "3"})
    assert racks() == ["q", "r"]
    rack = "s"
    story.do("hello", ["b", "t"], {"rack": "s"})
    story.do("join", ["m1"], {"range": "t", "version": "3"})
    assert racks() == ["s", "s"]
