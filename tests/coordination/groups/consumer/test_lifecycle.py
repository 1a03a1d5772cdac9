"""Members join and leave, and reconcile with their targets."""

from __future__ import annotations

from ottla.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from tests.coordination.groups.consumer.prelude import GIVEN_BACK
from tests.coordination.groups.consumer.story import Story


def test_every_change_is_written_as_kafka_writes_it() -> None:
    Story(records=True).play("""
        topics t=4 →

        hello a t
        keep member a t
        keep epoch 1
        keep target a t-0 t-1 t-2 t-3
        keep target epoch 1
        keep current a STABLE 1 t-0 t-1 t-2 t-3
        a: epoch 1 has t-0 t-1 t-2 t-3
        Stable 1/1: a@1[t-0 t-1 t-2 t-3]

        alive a → a: epoch 1

        hello b t
        keep member b t
        keep epoch 2
        keep target a t-0 t-1
        keep target b t-2 t-3
        keep target epoch 2
        keep current b UNRELEASED_PARTITIONS 2
        b: epoch 2 has nothing
        Reconciling 2/2: a@1[t-0 t-1 t-2 t-3] b@2[?]

        alive a
        keep current a UNREVOKED_PARTITIONS 1 t-0 t-1
        a: epoch 1 has t-0 t-1
        Reconciling 2/2: a@1[t-0 t-1 -t-2 -t-3] b@2[?]

        alive a owns=t-0,t-1,t-2,t-3 → a: epoch 1

        alive a owns=t-0,t-1
        keep current a STABLE 2 t-0 t-1
        a: epoch 2
        Reconciling 2/2: a@2[t-0 t-1] b@2[?]

        alive b
        keep current b STABLE 2 t-2 t-3
        b: epoch 2 has t-2 t-3
        Stable 2/2: a@2[t-0 t-1] b@2[t-2 t-3]

        bye a
        keep no CurrentMember a
        keep no TargetMember a
        keep no MemberMetadata a
        keep epoch 3
        a: epoch -1
        Assigning 3/2: b@2[t-2 t-3]

        alive b
        keep target b t-0 t-1 t-2 t-3
        keep target epoch 3
        keep current b STABLE 3 t-0 t-1 t-2 t-3
        b: epoch 3 has t-0 t-1 t-2 t-3
        Stable 3/3: b@3[t-0 t-1 t-2 t-3]

        bye b
        keep no CurrentMember b
        keep no TargetMember b
        keep no MemberMetadata b
        keep epoch 4
        b: epoch -1
        Empty 4/3
    """)


def test_a_member_without_partitions_stays_a_member() -> None:
    Story().play("""
        hello a t
        a: epoch 1 has nothing
        Stable 1/1: a@1[]

        alive a → a: epoch 1
        topics t=2 →

        alive a
        a: epoch 2 has t-0 t-1
        Stable 2/2: a@2[t-0 t-1]

        topics t=3 →

        alive a
        a: epoch 3 has t-0 t-1 t-2
        Stable 3/3: a@3[t-0 t-1 t-2]

        topics u=1 →

        alive a
        a: epoch 3 has nothing
        Reconciling 4/4: a@3[-gone-0 -gone-1 -gone-2]

        alive a owns=
        a: epoch 4
        Stable 4/4: a@4[]
    """)


def test_a_recreated_topic_is_a_different_topic() -> None:
    Story().play("""
        topics t=2 →

        hello a t
        a: epoch 1 has t-0 t-1
        Stable 1/1: a@1[t-0 t-1]

        topics u=1 →

        alive a
        a: epoch 1 has nothing
        Reconciling 2/2: a@1[-gone-0 -gone-1]

        alive a owns=
        a: epoch 2
        Stable 2/2: a@2[]

        topics t=2 u=1 →

        alive a
        a: epoch 3 has t-0 t-1
        Stable 3/3: a@3[t-0 t-1]
    """)


def test_a_changed_subscription_first_revokes_the_dropped_topics() -> None:
    Story().play("""
        topics t=2 u=2 →

        hello a t+u
        a: epoch 1 has t-0 t-1 u-0 u-1
        Stable 1/1: a@1[t-0 t-1 u-0 u-1]

        hello b t
        b: epoch 2 has nothing
        Reconciling 2/2: a@1[t-0 t-1 u-0 u-1] b@2[?]

        alive a
        a: epoch 1 has u-0 u-1
        Reconciling 2/2: a@1[u-0 u-1 -t-0 -t-1] b@2[?]

        alive a owns=t-0,u-0,u-1 → a: epoch 1
        alive b → b: epoch 2

        alive a u
        a: epoch 1
        Reconciling 3/3: a@1[u-0 u-1 -t-0 -t-1] b@2[?]

        alive a owns=u-0,u-1
        a: epoch 3
        Reconciling 3/3: a@3[u-0 u-1] b@2[?]

        alive b
        b: epoch 3 has t-0 t-1
        Stable 3/3: a@3[u-0 u-1] b@3[t-0 t-1]
    """)


def test_a_member_that_lost_a_response_repeats_its_previous_epoch() -> None:
    Story().play(
        GIVEN_BACK,
        """
        alive a epoch=1 owns=t-0 → a: epoch 2
        alive a epoch=1 → a: FENCED_MEMBER_EPOCH member epoch 1 is smaller than 2, which the coordinator knows: give up all partitions and join again
        alive a epoch=1 owns=t-0,t-1 → a: FENCED_MEMBER_EPOCH member epoch 1 is smaller than 2, which the coordinator knows: give up all partitions and join again
        alive a epoch=7 → a: FENCED_MEMBER_EPOCH member epoch 7 is greater than 2, which the coordinator knows: give up all partitions and join again
    """,
    )


def test_a_fenced_member_rejoins_and_gets_its_partitions_back() -> None:
    Story().play("""
        topics t=2 →

        hello a t
        a: epoch 1 has t-0 t-1
        Stable 1/1: a@1[t-0 t-1]

        alive a epoch=9 → a: FENCED_MEMBER_EPOCH member epoch 9 is greater than 1, which the coordinator knows: give up all partitions and join again
        hello a t → a: epoch 1 has t-0 t-1
        hello a t → a: epoch 1 has t-0 t-1
    """)


def test_a_member_without_heartbeats_is_removed_after_its_session() -> None:
    Story(consumer_session_timeout_ms=10_000).play("""
        topics t=2 →

        hello a t
        a: epoch 1 has t-0 t-1
        Stable 1/1: a@1[t-0 t-1]

        hello b t
        b: epoch 2 has nothing
        Reconciling 2/2: a@1[t-0 t-1] b@2[?]

        wait 6 →

        alive a
        a: epoch 1 has t-0
        Reconciling 2/2: a@1[t-0 -t-1] b@2[?]

        alive a owns=t-0
        a: epoch 2
        Reconciling 2/2: a@2[t-0] b@2[?]

        wait 6 → Assigning 3/2: a@2[t-0]

        alive a owns=t-0
        a: epoch 3 has t-0 t-1
        Stable 3/3: a@3[t-0 t-1]

        wait 11 → Empty 4/3
    """)


def test_a_member_that_does_not_revoke_within_its_rebalance_timeout_is_removed() -> None:
    Story(consumer_session_timeout_ms=10_000).play("""
        topics t=2 →

        hello a t rebalance=20
        a: epoch 1 has t-0 t-1
        Stable 1/1: a@1[t-0 t-1]

        hello b t
        b: epoch 2 has nothing
        Reconciling 2/2: a@1[t-0 t-1] b@2[?]

        alive a
        a: epoch 1 has t-0
        Reconciling 2/2: a@1[t-0 -t-1] b@2[?]

        wait 8 →
        alive a → a: epoch 1
        alive b → b: epoch 2
        wait 8 →
        alive a → a: epoch 1
        alive b → b: epoch 2
        wait 5 → Assigning 3/2: b@2[?]

        alive b
        b: epoch 3 has t-0 t-1
        Stable 3/3: b@3[t-0 t-1]

        alive a → a: UNKNOWN_MEMBER_ID group g has no member a
    """)


def test_after_a_restart_members_keep_their_assignment_with_a_fresh_session() -> None:
    Story(consumer_session_timeout_ms=10_000).play("""
        topics t=3 →

        hello a t rebalance=15
        a: epoch 1 has t-0 t-1 t-2
        Stable 1/1: a@1[t-0 t-1 t-2]

        hello b t
        b: epoch 2 has nothing
        Reconciling 2/2: a@1[t-0 t-1 t-2] b@2[?]

        alive a
        a: epoch 1 has t-0 t-1
        Reconciling 2/2: a@1[t-0 t-1 -t-2] b@2[?]

        wait 9 →
        restart →
        alive a → a: epoch 1
        alive b → b: epoch 2
        wait 9 →
        alive a → a: epoch 1
        alive b → b: epoch 2
        wait 8 → Assigning 3/2: b@2[?]

        alive b
        b: epoch 3 has t-0 t-1 t-2
        Stable 3/3: b@3[t-0 t-1 t-2]
    """)


def test_unknown_members_are_rejected() -> None:
    Story().play("""
        topics t=1 →
        alive a → a: GROUP_ID_NOT_FOUND there is no group g
        bye a → a: GROUP_ID_NOT_FOUND there is no group g

        hello a t
        a: epoch 1 has t-0
        Stable 1/1: a@1[t-0]

        alive b → b: UNKNOWN_MEMBER_ID group g has no member b
        bye b → b: UNKNOWN_MEMBER_ID group g has no member b
    """)


def test_a_full_group_rejects_new_members() -> None:
    Story(consumer_max_size=1).play("""
        topics t=1 →

        hello a t
        a: epoch 1 has t-0
        Stable 1/1: a@1[t-0]

        hello b t → b: GROUP_MAX_SIZE_REACHED the group is full: it may have 1 members (group.consumer.max.size)
        hello a t → a: epoch 1 has t-0
    """)


def test_a_group_is_deleted_when_it_is_empty_and_not_before() -> None:
    Story().play("""
        topics t=1 →

        hello a t
        a: epoch 1 has t-0
        Stable 1/1: a@1[t-0]

        delete g → admin: NON_EMPTY_GROUP
        commit a gen=1 t-0=5 → a: NONE

        bye a
        a: epoch -1
        Empty 2/1

        delete g
        admin: NONE
        no group

        delete g → admin: GROUP_ID_NOT_FOUND
    """)


def test_a_full_heartbeat_returns_the_assignment_and_a_partial_one_only_changes() -> None:
    Story().play("""
        topics t=2 →

        hello a t
        a: epoch 1 has t-0 t-1
        Stable 1/1: a@1[t-0 t-1]

        alive a t owns= rebalance=60 → a: epoch 1 has t-0 t-1

        alive a regex=t owns=t-0,t-1 rebalance=60
        a: epoch 2 has t-0 t-1
        Stable 2/2: a@2[t-0 t-1]

        alive a regex=t owns=t-0,t-1 → a: epoch 2
        alive a regex=t rebalance=60 → a: epoch 2
        alive a owns=t-0,t-1 rebalance=60 → a: epoch 2
        alive a → a: epoch 2
    """)


def test_the_first_version_gets_a_member_id_from_the_coordinator() -> None:
    tale = Story()
    tale.play("topics t=2 →")
    nameless = ConsumerGroupHeartbeatRequest(
        "g", "", 0, rebalance_timeout_ms=60_000, subscribed_topic_names=["t"], topic_partitions=[]
    )
    tale.heart("a", nameless, version=0)
    assert list(tale.consumers.members) == ["a!"]
