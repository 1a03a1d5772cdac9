"""Groups with members of both protocols, during the conversion from one to the other."""

from __future__ import annotations

import pytest

from ottla.protocol.messages.consumer_protocol import ConsumerProtocolAssignment, encode
from tests.coordination.groups.consumer.prelude import CLASSIC_AND_THIRD
from tests.coordination.groups.consumer.story import Story


def test_a_classic_group_is_upgraded_online_and_downgraded_with_its_last_consumer_member() -> None:
    Story().play("""
        topics t=4 →

        join a range=t version=3
        because m1 joins
        a: m1 in 1 by range led by m1 of m1
        CompletingRebalance 1: m1*

        sync m1 gen=1 m1=t-0,t-1,t-2,t-3
        m1: has t-0 t-1 t-2 t-3
        Stable 1: m1*

        hello b t
        b: epoch 2 has nothing
        Reconciling 2/2: m1~@1[t-0 t-1 t-2 t-3] b@2[?]

        alive b → b: epoch 2
        beat m1 gen=1 → m1: REBALANCE_IN_PROGRESS

        join m1 range=t version=3
        m1: m1 in 2 by range
        Reconciling 2/2: m1~@2[t-0 t-1] b@2[?]

        sync m1 gen=2 → m1: has t-0 t-1

        alive b
        b: epoch 2 has t-2 t-3
        Stable 2/2: m1~@2[t-0 t-1] b@2[t-2 t-3]

        beat m1 gen=2 → m1: NONE

        bye b
        because the last member of the new protocol left: the group continues with the classic one
        b: epoch -1
        PreparingRebalance 3: m1*

        beat m1 gen=3 → m1: REBALANCE_IN_PROGRESS

        join m1 range=t version=3
        m1: m1 in 4 by range led by m1 of m1
        CompletingRebalance 4: m1*
    """)


def test_a_cooperative_member_revokes_before_it_rejoins() -> None:
    Story().play("""
        topics t=4 →

        hello b t
        b: epoch 1 has t-0 t-1 t-2 t-3
        Stable 1/1: b@1[t-0 t-1 t-2 t-3]

        join a cooperative=t → a: MEMBER_ID_REQUIRED m1

        join m1 cooperative=t
        m1: m1 in 2 by cooperative
        Reconciling 2/2: b@1[t-0 t-1 t-2 t-3] m1~@2[?]

        alive b
        b: epoch 1 has t-0 t-1
        Reconciling 2/2: b@1[t-0 t-1 -t-2 -t-3] m1~@2[?]

        alive b owns=t-0,t-1
        b: epoch 2
        Reconciling 2/2: b@2[t-0 t-1] m1~@2[?]

        beat m1 gen=2 → m1: REBALANCE_IN_PROGRESS

        join m1 cooperative=t
        m1: m1 in 2 by cooperative
        Stable 2/2: b@2[t-0 t-1] m1~@2[t-2 t-3]

        sync m1 gen=2 → m1: has t-2 t-3

        hello c t
        c: epoch 3 has nothing
        Reconciling 3/3: b@2[t-0 t-1] m1~@2[t-2 t-3] c@3[?]

        beat m1 gen=2 → m1: REBALANCE_IN_PROGRESS

        join m1 cooperative=t owned=t-2,t-3
        m1: m1 in 2 by cooperative
        Reconciling 3/3: b@2[t-0 t-1] m1~@2[t-2 -t-3] c@3[?]

        sync m1 gen=2 → m1: has t-2
        beat m1 gen=2 → m1: REBALANCE_IN_PROGRESS

        join m1 cooperative=t owned=t-2
        m1: m1 in 3 by cooperative
        Reconciling 3/3: b@2[t-0 t-1] m1~@3[t-2] c@3[?]

        sync m1 gen=3 → m1: has t-2
        beat m1 gen=3 → m1: NONE
    """)


def test_members_waiting_for_a_rebalance_are_redirected_to_the_new_group_type() -> None:
    Story(initial_rebalance_delay=3.0).play("""
        topics t=2 →

        join a range=t version=3
        because m1 joins
        PreparingRebalance 0: m1*+

        hello b t
        a: REBALANCE_IN_PROGRESS m1
        b: epoch 1 has t-0
        Reconciling 1/1: m1~@0[] b@1[t-0]

        join m1 range=t version=3
        m1: m1 in 1 by range
        Stable 1/1: m1~@1[t-1] b@1[t-0]

        sync m1 gen=1 → m1: has t-1
    """)


def test_a_classic_member_that_does_not_join_again_in_its_rebalance_timeout_is_removed() -> None:
    Story().play(
        CLASSIC_AND_THIRD,
        """
        wait 15 →

        alive b
        b: epoch 1 has t-0
        Reconciling 3/3: b@1[t-0 -t-1] m1~@2[?] c@3[]

        beat m1 gen=2 → m1: REBALANCE_IN_PROGRESS
        wait 15 → Assigning 4/3: b@1[t-0 -t-1] c@3[]
        beat m1 gen=2 → m1: UNKNOWN_MEMBER_ID

        alive b
        b: epoch 1
        Reconciling 4/4: b@1[t-0 -t-1] c@3[]

        wait 6 →
    """,
    )


def test_a_classic_member_that_does_not_fetch_its_assignment_is_removed() -> None:
    Story().play("""
        topics t=2 →

        hello b t
        b: epoch 1 has t-0 t-1
        Stable 1/1: b@1[t-0 t-1]

        join a range=t version=3 session=50 rebalance=20
        a: m1 in 2 by range
        Reconciling 2/2: b@1[t-0 t-1] m1~@2[?]

        wait 21 → Assigning 3/2: b@1[t-0 t-1]
    """)


def test_a_static_member_changes_the_protocol_and_back_under_its_instance_id() -> None:
    Story().play("""
        topics t=2 →

        join a static=i range=t version=9
        because m1, which is instance i, joins
        a: m1 in 1 by range led by m1 of m1
        CompletingRebalance 1: m1*

        sync m1 gen=1 static=i m1=t-0,t-1
        m1: has t-0 t-1
        Stable 1: m1*

        hello b t static=i
        b: epoch 1 has t-0 t-1
        Stable 1/1: b@1[t-0 t-1]

        alive b static=i owns=t-0,t-1 → b: epoch 1

        join c static=i range=t version=9
        because the last member of the new protocol left: the group continues with the classic one
        c: m2 in 1 by range
        PreparingRebalance 1: m2*
    """)


def test_an_incompatible_member_is_rejected() -> None:
    Story().play("""
        topics t=2 →

        hello a t
        a: epoch 1 has t-0 t-1
        Stable 1/1: a@1[t-0 t-1]

        join b range=t type=connect version=3 → b: INCONSISTENT_GROUP_PROTOCOL
        join b range=t session=1 version=3 → b: INVALID_SESSION_TIMEOUT

        join b range=t version=3
        b: m3 in 2 by range
        Reconciling 2/2: a@1[t-0 t-1] m3~@2[?]

        join c roundrobin=t version=3 → c: INCONSISTENT_GROUP_PROTOCOL
        sync m3 gen=9 → m3: ILLEGAL_GENERATION
        sync m3 gen=2 protocol=other → m3: INCONSISTENT_GROUP_PROTOCOL
        sync a gen=2 → a: UNKNOWN_MEMBER_ID
        beat m3 gen=9 → m3: ILLEGAL_GENERATION
        beat a gen=1 → a: UNKNOWN_MEMBER_ID
        beat stranger gen=1 → stranger: UNKNOWN_MEMBER_ID
        commit m3 gen=9 t-0=1 → m3: ILLEGAL_GENERATION
        commit m3 gen=2 t-0=1 → m3: NONE

        leave m3
        m3: NONE
        Assigning 3/2: a@1[t-0 t-1]
    """)


def test_a_group_of_another_type_is_not_converted() -> None:
    Story().play("""
        topics t=2 →

        join a range=t type=connect version=3
        because m1 joins
        a: m1 in 1 by range led by m1 of m1
        CompletingRebalance 1: m1*

        hello b t → b: GROUP_ID_NOT_FOUND group g stays with the classic protocol: its members speak 'connect', not 'consumer'
    """)


def test_a_policy_can_forbid_an_upgrade() -> None:
    Story(consumer_migration_policy="downgrade").play("""
        topics t=2 →

        join a range=t version=3
        because m1 joins
        a: m1 in 1 by range led by m1 of m1
        CompletingRebalance 1: m1*

        hello b t → b: GROUP_ID_NOT_FOUND group g stays with the classic protocol: online upgrade is disabled
    """)


def test_a_policy_can_forbid_a_downgrade() -> None:
    Story(consumer_migration_policy="upgrade").play("""
        topics t=2 →

        hello b t
        b: epoch 1 has t-0 t-1
        Stable 1/1: b@1[t-0 t-1]

        join a range=t version=3
        a: m1 in 2 by range
        Reconciling 2/2: b@1[t-0 t-1] m1~@2[?]

        bye b
        b: epoch -1
        Assigning 3/2: m1~@2[?]

        beat m1 gen=2 → m1: REBALANCE_IN_PROGRESS

        leave m1
        m1: NONE
        Empty 4/2
    """)


def test_an_empty_group_takes_the_protocol_of_its_next_member() -> None:
    Story().play("""
        topics t=2 →

        hello a t
        a: epoch 1 has t-0 t-1
        Stable 1/1: a@1[t-0 t-1]

        bye a
        a: epoch -1
        Empty 2/1

        join b range=t version=3
        because m1 joins
        b: m1 in 1 by range led by m1 of m1
        CompletingRebalance 1: m1*

        leave m1
        because m1 left by LeaveGroup
        m1: NONE
        Empty 2

        hello a t
        a: epoch 1 has t-0 t-1
        Stable 1/1: a@1[t-0 t-1]

        restart →
        alive a → a: epoch 1
    """)


@pytest.mark.parametrize(("assignor", "goes_over"), [("cooperative-sticky", True), ("mine", False)])
def test_user_data_of_a_custom_assignor_is_not_dropped_silently(assignor: str, goes_over: bool) -> None:
    story = Story()
    given = encode(ConsumerProtocolAssignment([], b"state"))
    story.assignment = lambda text: given  # type: ignore[method-assign]
    story.do("topics", [], {"t": "1"})
    story.do("join", ["a"], {assignor: "t", "version": "3"})
    story.do("sync", ["m1"], {"gen": "1", "m1": "t-0"})
    story.happened = []
    story.do("hello", ["b", "t"], {})
    assert ("keeps data of its own" not in story.happened[-1]) == goes_over


def test_a_removed_member_with_partitions_is_fenced_and_one_without_may_rejoin() -> None:
    Story().play("""
        topics t=2 →

        hello b t
        b: epoch 1 has t-0 t-1
        Stable 1/1: b@1[t-0 t-1]

        join m1 cooperative=t owned=t-0 → m1: UNKNOWN_MEMBER_ID m1

        join m1 cooperative=t
        m1: m1 in 2 by cooperative
        Reconciling 2/2: b@1[t-0 t-1] m1~@2[?]
    """)


def test_a_group_upgraded_during_a_rebalance_is_assigned_again() -> None:
    Story().play("""
        topics t=2 →

        join a range=t static=i version=5
        because m1, which is instance i, joins
        a: m1 in 1 by range led by m1 of m1
        CompletingRebalance 1: m1*

        hello b t static=i
        b: epoch 2 has t-0 t-1
        Stable 2/2: b@2[t-0 t-1]
    """)
