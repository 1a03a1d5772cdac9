"""Members join, get assignments, and rejoin."""

from __future__ import annotations

from ottla.coordination.groups.classic.decision import SESSION, updated_member
from ottla.coordination.groups.classic.group import ClassicMember
from ottla.coordination.groups.events import JoinRequested, TimerName
from ottla.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from tests.coordination.groups.prelude import (
    one_joined,
    one_stable,
    two_assigned,
    two_joined,
    two_joining,
    two_stable,
    two_static_joining,
)
from tests.coordination.groups.story import Story


def test_a_client_gets_a_member_id_and_joins_with_it_as_leader() -> None:
    Story().play("""
        join a range=t
        a: MEMBER_ID_REQUIRED m1
        Empty 0

        join m1 range=t
        because m1 joins
        m1: m1 in 1 by range led by m1 of m1
        CompletingRebalance 1: m1*

        sync m1 gen=1 m1=all
        keep generation 1 m1=all
        m1: has all
        Stable 1: m1*

        beat m1 gen=1 → m1: NONE
    """)


def test_an_old_client_and_a_static_one_join_at_once() -> None:
    Story().play(one_joined()).play("""
        join b static=i range=t
        because m2, which is instance i, joins
        PreparingRebalance 1: m1* m2+
    """)


def test_a_second_member_makes_the_first_one_join_again_and_the_leader_shares_out() -> None:
    Story().play(one_stable(part="all")).play("""
        join b range=t → b: MEMBER_ID_REQUIRED m2

        join m2 range=t
        because m2 joins
        PreparingRebalance 1: m1* m2+

        beat m1 gen=1 → m1: REBALANCE_IN_PROGRESS

        commit m1 gen=1 t-0=5
        keep t-0 5
        m1: NONE

        join m1 range=t
        m1: m1 in 2 by range led by m1 of m1,m2
        m2: m2 in 2 by range led by m1
        CompletingRebalance 2: m1* m2

        sync m2 gen=2 → CompletingRebalance 2: m1* m2~

        sync m1 gen=2 m1=A m2=B
        keep generation 2 m1=A m2=B
        m1: has A
        m2: has B
        Stable 2: m1* m2

        beat m2 gen=2 → m2: NONE
    """)


def test_an_unused_member_id_delays_a_rebalance_for_at_most_its_session() -> None:
    Story().play(one_stable(part="all")).play("""
        join b range=t session=6 → b: MEMBER_ID_REQUIRED m2

        join c version=3 range=t
        because m3 joins
        PreparingRebalance 1: m1* m3+

        join m1 range=t session=30 → PreparingRebalance 1: m1*+ m3+

        wait 6
        m1: m1 in 2 by range led by m1 of m1,m3
        c: m3 in 2 by range led by m1
        CompletingRebalance 2: m1* m3
    """)


def test_a_join_during_a_rebalance_waits_for_all_members() -> None:
    Story().play(two_joining()).play("""
        join c version=3 range=t → PreparingRebalance 1: m1* m2+ m3+

        join m1 range=t
        m1: m1 in 2 by range led by m1 of m1,m2,m3
        b: m2 in 2 by range led by m1
        c: m3 in 2 by range led by m1
        CompletingRebalance 2: m1* m2 m3
    """)


def test_a_rebalance_waits_for_the_longest_rebalance_timeout_and_drops_missing_members() -> None:
    Story().play(one_stable("rebalance=20 session=60", part="all")).play("""
        join b version=3 range=t rebalance=30 session=60
        because m2 joins
        PreparingRebalance 1: m1* m2+

        wait 29 →

        wait 1
        b: m2 in 2 by range led by m2 of m2
        CompletingRebalance 2: m2*

        join m1 range=t → m1: UNKNOWN_MEMBER_ID m1

        sync m2 gen=2 m2=all
        keep generation 2 m2=all
        m2: has all
        Stable 2: m2*
    """)


def test_in_the_first_version_the_session_timeout_is_for_the_rebalance_too() -> None:
    Story().play("""
        join a version=0 session=10 rebalance=-0.001 range=t
        because m1 joins
        a: m1 in 1 by range led by m1 of m1
        CompletingRebalance 1: m1*

        sync m1 gen=1 m1=all
        keep generation 1 m1=all
        m1: has all
        Stable 1: m1*

        join b version=0 session=10 rebalance=-0.001 range=t
        because m2 joins
        PreparingRebalance 1: m1* m2+

        wait 8 →
        beat m1 gen=1 → m1: REBALANCE_IN_PROGRESS

        wait 2
        b: m2 in 2 by range led by m2 of m2
        CompletingRebalance 2: m2*
    """)


def test_an_unchanged_rejoin_of_a_follower_repeats_the_response_and_one_of_the_leader_rebalances() -> None:
    Story().play(two_joined()).play("""
        join m2 range=t → m2: m2 in 2 by range led by m1
        join m1 range=t → m1: m1 in 2 by range led by m1 of m1,m2

        sync m1 gen=2 m1=A m2=B
        keep generation 2 m1=A m2=B
        m1: has A
        Stable 2: m1* m2

        sync m2 gen=2 → m2: has B
        join m2 range=t → m2: m2 in 2 by range led by m1

        join m1 range=t reason=topics-changed
        because the leader, m1, joins again in Stable: topics-changed
        PreparingRebalance 2: m1*+ m2
    """)


def test_a_member_with_a_new_subscription_starts_a_rebalance() -> None:
    Story().play(two_stable()).play("""
        join m2 range=t+u
        because m2 joins again in Stable
        PreparingRebalance 2: m1* m2+

        join m1 range=t
        m1: m1 in 3 by range led by m1 of m1,m2
        m2: m2 in 3 by range led by m1
        CompletingRebalance 3: m1* m2

        sync m2 gen=3 → CompletingRebalance 3: m1* m2~
    """)


def test_a_new_subscription_during_assignment_makes_all_members_rejoin() -> None:
    Story().play(two_joined()).play("""
        sync m2 gen=2 → CompletingRebalance 2: m1* m2~

        join m1 range=t+u
        because m1 joins again in CompletingRebalance
        m2: REBALANCE_IN_PROGRESS
        PreparingRebalance 2: m1*+ m2

        join m2 range=t
        m1: m1 in 3 by range led by m1 of m1,m2
        m2: m2 in 3 by range led by m1
        CompletingRebalance 3: m1* m2
    """)


def test_a_repeated_join_is_answered_on_the_new_connection() -> None:
    Story().play(one_stable()).play("""
        join b version=3 range=t
        because m2 joins
        PreparingRebalance 1: m1* m2+

        join m2 range=t → b: REBALANCE_IN_PROGRESS m2

        join m1 range=t
        m1: m1 in 2 by range led by m1 of m1,m2
        m2: m2 in 2 by range led by m1
        CompletingRebalance 2: m1* m2
    """)


def test_unknown_members_and_out_of_range_session_timeouts_are_rejected() -> None:
    Story().play("""
        join stranger range=t → stranger: UNKNOWN_MEMBER_ID stranger

        join a version=3 range=t
        because m1 joins
        a: m1 in 1 by range led by m1 of m1
        CompletingRebalance 1: m1*

        join stranger range=t → stranger: UNKNOWN_MEMBER_ID stranger
        join b session=5.9 range=t → b: INVALID_SESSION_TIMEOUT
        join c session=1801 range=t → c: INVALID_SESSION_TIMEOUT
    """)
    Story().play("""
        join a session=6 version=4 range=t
        a: MEMBER_ID_REQUIRED m1
        Empty 0

        join b session=1800 range=t → b: MEMBER_ID_REQUIRED m2
        join m2 static=i range=t → m2: UNKNOWN_MEMBER_ID m2
    """)


def test_a_repeated_response_renews_the_session() -> None:
    Story().play(two_stable()).play("""
        wait 8 →
        beat m1 gen=2 → m1: NONE
        join m2 range=t → m2: m2 in 2 by range led by m1
        wait 9 →
        beat m1 gen=2 → m1: NONE
        beat m2 gen=2 → m2: NONE
    """)


def test_the_timeouts_of_the_last_join_apply() -> None:
    Story().play(one_stable("rebalance=10")).play("""
        join m1 session=30 rebalance=20 range=t
        because the leader, m1, joins again in Stable
        m1: m1 in 2 by range led by m1 of m1
        CompletingRebalance 2: m1*

        sync m1 gen=2 m1=A
        keep generation 2 m1=A
        m1: has A
        Stable 2: m1*

        wait 29 →
        beat m1 gen=2 → m1: NONE

        join b version=3 session=40 rebalance=10 range=t
        because m2 joins
        PreparingRebalance 2: m1* m2+

        wait 19 →

        wait 1
        b: m2 in 3 by range led by m2 of m2
        CompletingRebalance 3: m2*
    """)


def test_a_member_with_a_zero_rebalance_timeout_is_not_waited_for() -> None:
    Story().play(one_stable("rebalance=0")).play("""
        join b version=3 rebalance=0 range=t
        because m2 joins
        PreparingRebalance 1: m1* m2+

        wait 0
        b: m2 in 2 by range led by m2 of m2
        CompletingRebalance 2: m2*
        keep generation 3
        because 1 members did not send SyncGroup in time
        Empty 3
    """)


def test_a_full_group_rejects_joins() -> None:
    Story(max_size=2).play(two_assigned()).play("""
        join c version=3 range=t → c: GROUP_MAX_SIZE_REACHED
        join m2 range=t → m2: m2 in 2 by range led by m1
        sync m2 gen=2 → m2: has B
    """)


def test_in_a_rebalance_of_a_full_group_the_first_members_to_join_stay() -> None:
    Story(max_size=2).play(two_joining()).play("""
        join c version=3 range=t → PreparingRebalance 1: m1* m2+ m3+
        join m2 range=t → b: REBALANCE_IN_PROGRESS m2

        join m1 range=t
        m1: GROUP_MAX_SIZE_REACHED m1
        m2: m2 in 2 by range led by m2 of m2,m3
        c: m3 in 2 by range led by m2
        CompletingRebalance 2: m2* m3
    """)


def test_a_repeated_sync_on_another_connection_answers_the_first_one() -> None:
    Story().play(two_joined()).play("""
        sync m2 gen=2 → CompletingRebalance 2: m1* m2~
        sync m2 gen=2 → m2: REBALANCE_IN_PROGRESS

        sync m1 gen=2 m1=A m2=B
        keep generation 2 m1=A m2=B
        m1: has A
        m2: has B
        Stable 2: m1* m2
    """)


def test_a_member_id_beyond_the_group_limit_is_not_waited_for() -> None:
    Story(max_size=2).play(two_joining()).play("""
        join c range=t → c: MEMBER_ID_REQUIRED m3
        join d version=3 range=t → PreparingRebalance 1: m1* m2+ m4+
        join m3 range=t → m3: GROUP_MAX_SIZE_REACHED m3

        join m1 range=t
        m1: GROUP_MAX_SIZE_REACHED m1
        b: m2 in 2 by range led by m2 of m2,m4
        d: m4 in 2 by range led by m2
        CompletingRebalance 2: m2* m4
    """)


def test_a_member_id_is_kept_for_the_requested_session_timeout() -> None:
    story = Story().play("join a session=6 range=t\na: MEMBER_ID_REQUIRED m1\nEmpty 0")
    assert story.alarms == {TimerName(SESSION, "g", "m1"): 6.0}


def test_a_join_updates_the_client_of_a_member() -> None:
    member = ClassicMember("m1", None, "app", "/h", 1, 2, (("range", b""),), _topics={"range": frozenset("t")})
    request = JoinGroupRequest(
        "g", 20, 10, "m1", protocol_type="consumer", protocols=[JoinGroupRequestProtocol("sticky", b"s")]
    )
    again = updated_member(member, JoinRequested(7, request, 9, "", "other", "/i", 0), "m1")
    assert again == ClassicMember("m1", None, "other", "/i", 10, 20, (("sticky", b"s"),), join_ticket=7)
    assert not again._topics


def test_a_leader_that_is_not_the_first_stays_the_leader() -> None:
    Story().play(two_static_joining("session=60 rebalance=20")).play("""
        wait 20
        b: m2 in 2 by range led by m2 of m1,m2
        CompletingRebalance 2: m1 m2*

        join m2 static=j range=t+u session=60 rebalance=20
        because m2 joins again in CompletingRebalance
        PreparingRebalance 2: m1 m2*+

        join m1 static=i range=t session=60 rebalance=20
        m1: m1 in 3 by range led by m2
        m2: m2 in 3 by range led by m2 of m1,m2
        CompletingRebalance 3: m1 m2*
    """)
