"""Static members have a place of their own (KIP-345), and leave it for a while."""

from __future__ import annotations

from tests.coordination.groups.consumer.story import Story


def test_a_temporarily_leaving_static_member_returns_to_its_place_under_a_new_id() -> None:
    Story().play("""
        topics t=4 →

        hello a t static=i
        a: epoch 1 has t-0 t-1 t-2 t-3
        Stable 1/1: a@1[t-0 t-1 t-2 t-3]

        hello b t static=j
        b: epoch 2 has nothing
        Reconciling 2/2: a@1[t-0 t-1 t-2 t-3] b@2[?]

        alive a static=i
        a: epoch 1 has t-0 t-1
        Reconciling 2/2: a@1[t-0 t-1 -t-2 -t-3] b@2[?]

        alive a static=i owns=t-0,t-1
        a: epoch 2
        Reconciling 2/2: a@2[t-0 t-1] b@2[?]

        alive b static=j
        b: epoch 2 has t-2 t-3
        Stable 2/2: a@2[t-0 t-1] b@2[t-2 t-3]

        bye a static=i for-a-while
        a: epoch -2
        Reconciling 2/2: a@-2[t-0 t-1] b@2[t-2 t-3]

        alive b static=j → b: epoch 2

        hello a2 t static=i
        a2: epoch 2 has t-0 t-1
        Stable 2/2: b@2[t-2 t-3] a2@2[t-0 t-1]

        alive a2 static=i owns=t-0,t-1 → a2: epoch 2
        alive a t static=i → a: FENCED_INSTANCE_ID Static member a with instance id i was fenced by member a2.
        alive b static=j → b: epoch 2
    """)


def test_a_static_member_that_does_not_return_within_its_session_loses_its_place() -> None:
    Story(consumer_session_timeout_ms=10_000).play("""
        topics t=2 →

        hello a t static=i
        a: epoch 1 has t-0 t-1
        Stable 1/1: a@1[t-0 t-1]

        bye a static=i for-a-while
        a: epoch -2
        Reconciling 1/1: a@-2[t-0 t-1]

        wait 6 →

        hello b t
        b: epoch 2 has nothing
        Reconciling 2/2: a@-2[t-0 t-1] b@2[?]

        wait 6 → Assigning 3/2: b@2[?]

        alive b
        b: epoch 3 has t-0 t-1
        Stable 3/3: b@3[t-0 t-1]

        hello a2 t static=i
        a2: epoch 4 has nothing
        Reconciling 4/4: b@3[t-0 t-1] a2@4[?]

        alive b
        b: epoch 3 has t-0
        Reconciling 4/4: b@3[t-0 -t-1] a2@4[?]
    """)


def test_the_place_of_a_connected_static_member_cannot_be_taken() -> None:
    Story().play("""
        topics t=2 →

        hello a t static=i
        a: epoch 1 has t-0 t-1
        Stable 1/1: a@1[t-0 t-1]

        hello b t static=i → b: UNRELEASED_INSTANCE_ID instance id i is a's, which has not left: b cannot have it
        alive b static=i → b: FENCED_INSTANCE_ID Static member b with instance id i was fenced by member a.
        alive a static=k → a: UNKNOWN_MEMBER_ID Instance id k is unknown.
        bye b static=i for-a-while → b: FENCED_INSTANCE_ID Static member b with instance id i was fenced by member a.

        bye a static=i
        a: epoch -1
        Empty 2/1

        hello b t static=i
        b: epoch 3 has t-0 t-1
        Stable 3/3: b@3[t-0 t-1]
    """)


def test_a_temporarily_leaving_static_member_revokes_its_pending_partitions() -> None:
    Story().play("""
        topics t=2 →

        hello a t static=i
        a: epoch 1 has t-0 t-1
        Stable 1/1: a@1[t-0 t-1]

        hello b t
        b: epoch 2 has nothing
        Reconciling 2/2: a@1[t-0 t-1] b@2[?]

        alive a static=i
        a: epoch 1 has t-0
        Reconciling 2/2: a@1[t-0 -t-1] b@2[?]

        bye a static=i for-a-while
        a: epoch -2
        Reconciling 2/2: a@-2[t-0] b@2[?]

        alive b
        b: epoch 2 has t-1
        Reconciling 2/2: a@-2[t-0] b@2[t-1]

        hello a2 t static=i
        a2: epoch 2 has t-0
        Stable 2/2: b@2[t-1] a2@2[t-0]
    """)


def test_an_administrator_removes_a_static_member_by_its_name() -> None:
    Story().play("""
        topics t=2 →

        hello a t static=i
        a: epoch 1 has t-0 t-1
        Stable 1/1: a@1[t-0 t-1]

        leave static=i
        i: NONE
        Empty 2/1

        leave static=i → i: UNKNOWN_MEMBER_ID
    """)
