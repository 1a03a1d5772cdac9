"""Subscriptions of members, and their assignments."""

from __future__ import annotations

from tests.coordination.groups.consumer.story import Story


def test_a_regular_expression_is_matched_against_whole_names_and_also_against_later_topics() -> None:
    Story().play("""
        topics orders-1=1 orders-2=1 payments=1 old-orders-1=1 →

        hello a regex=orders-.*
        a: epoch 1 has orders-1-0 orders-2-0
        Stable 1/1: a@1[orders-1-0 orders-2-0]

        alive a → a: epoch 1
        topics orders-1=1 orders-2=1 payments=1 orders-3=1 →

        alive a
        a: epoch 2 has orders-1-0 orders-2-0 orders-3-0
        Stable 2/2: a@2[orders-1-0 orders-2-0 orders-3-0]

        topics payments=1 →

        alive a
        a: epoch 2 has nothing
        Reconciling 3/3: a@2[-gone-0 -gone-0 -gone-0]

        alive a owns=
        a: epoch 3
        Stable 3/3: a@3[]
    """)


def test_names_and_a_regular_expression_add_up_and_each_can_be_changed() -> None:
    Story(records=True).play("""
        topics t=1 u=1 v=1 →

        hello a t regex=u|v
        keep member a t
        keep regex u|v u+v
        keep epoch 1
        keep target a t-0 u-0 v-0
        keep target epoch 1
        keep current a STABLE 1 t-0 u-0 v-0
        a: epoch 1 has t-0 u-0 v-0
        Stable 1/1: a@1[t-0 u-0 v-0]

        alive a regex=v owns=t-0,u-0,v-0
        keep member a t
        keep no RegularExpression
        keep regex v v
        keep epoch 2
        keep target a t-0 v-0
        keep target epoch 2
        keep current a UNREVOKED_PARTITIONS 1 t-0 v-0
        a: epoch 1 has t-0 v-0
        Reconciling 2/2: a@1[t-0 v-0 -u-0]

        alive a owns=t-0,v-0
        keep current a STABLE 2 t-0 v-0
        a: epoch 2
        Stable 2/2: a@2[t-0 v-0]

        alive a u regex= owns=t-0,v-0
        keep member a u
        keep no RegularExpression
        keep epoch 3
        keep target a u-0
        keep target epoch 3
        keep current a UNREVOKED_PARTITIONS 2
        a: epoch 2 has nothing
        Reconciling 3/3: a@2[-t-0 -v-0]

        alive a owns=
        keep current a STABLE 3 u-0
        a: epoch 3 has u-0
        Stable 3/3: a@3[u-0]

        hello b u regex=v
        keep member b u
        keep regex v v
        keep epoch 4
        keep target b v-0
        keep target epoch 4
        keep current b STABLE 4 v-0
        b: epoch 4 has v-0
        Reconciling 4/4: a@3[u-0] b@4[v-0]

        bye b
        keep no CurrentMember b
        keep no TargetMember b
        keep no MemberMetadata b
        keep no RegularExpression
        keep epoch 5
        b: epoch -1
        Assigning 5/4: a@3[u-0]
    """)


def test_a_regular_expression_matches_only_topics_the_client_may_describe() -> None:
    Story().play("""
        topics t-1=1 t-2=1 →
        sight a t-1+t-3 →

        hello a regex=t-.*
        a: epoch 1 has t-1-0
        Stable 1/1: a@1[t-1-0]

        alive a → a: epoch 1
        topics t-1=1 t-2=1 t-3=1 →

        alive a
        a: epoch 2 has t-1-0 t-3-0
        Stable 2/2: a@2[t-1-0 t-3-0]
    """)


def test_a_joining_classic_member_reveals_no_topic_to_unauthorized_members() -> None:
    Story().play("""
        topics t-1=2 t-2=1 →
        sight a t-1 →

        hello a regex=t-.*
        a: epoch 1 has t-1-0 t-1-1
        Stable 1/1: a@1[t-1-0 t-1-1]

        join x range=t-1 version=3
        x: m1 in 2 by range
        Reconciling 2/2: a@1[t-1-0 t-1-1] m1~@2[?]

        alive a
        a: epoch 1 has t-1-0
        Reconciling 2/2: a@1[t-1-0 -t-1-1] m1~@2[?]

        alive a owns=t-1-0
        a: epoch 2
        Reconciling 2/2: a@2[t-1-0] m1~@2[?]
    """)


def test_members_with_different_permissions_do_not_overwrite_each_others_matches() -> None:
    Story().play("""
        topics t-1=1 t-2=1 →
        sight a t-1+t-2 →
        sight b t-1 →

        hello a regex=t-.*
        a: epoch 1 has t-1-0 t-2-0
        Stable 1/1: a@1[t-1-0 t-2-0]

        hello b regex=t-.*
        b: epoch 2 has nothing
        Reconciling 2/2: a@1[t-1-0 t-2-0] b@2[?]

        alive a
        a: epoch 1 has t-1-0
        Reconciling 2/2: a@1[t-1-0 -t-2-0] b@2[?]

        alive a owns=t-1-0
        a: epoch 2
        Reconciling 2/2: a@2[t-1-0] b@2[?]

        alive b
        b: epoch 2 has t-2-0
        Stable 2/2: a@2[t-1-0] b@2[t-2-0]

        wait 20 →
        alive a → a: epoch 2
        alive b → b: epoch 2
    """)


def test_a_topic_is_revoked_within_ten_minutes_after_its_permission_is_removed() -> None:
    story = Story(consumer_session_timeout_ms=3_600_000)
    story.play("""
        topics t-1=1 t-2=1 →
        sight a t-1+t-2 →

        hello a regex=t-.*
        a: epoch 1 has t-1-0 t-2-0
        Stable 1/1: a@1[t-1-0 t-2-0]

        sight a t-1 →
        alive a → a: epoch 1
        wait 600 →

        alive a
        a: epoch 1 has t-1-0
        Reconciling 2/2: a@1[t-1-0 -t-2-0]
    """)


def test_an_invalid_regular_expression_is_rejected_with_the_reason() -> None:
    Story().play(r"""
        topics t=1

        hello a regex=[
        a: INVALID_REGULAR_EXPRESSION subscribed topics `[`: invalid regular expression: missing closing ]

        hello a regex=(?=t)
        a: INVALID_REGULAR_EXPRESSION subscribed topics `(?=t)`: invalid regular expression: invalid or unsupported Perl syntax: `(?=`

        hello a regex=(t)\1
        a: INVALID_REGULAR_EXPRESSION subscribed topics `(t)\1`: invalid regular expression: invalid escape sequence: `\1`

        hello a regex=*
        a: INVALID_REGULAR_EXPRESSION subscribed topics `*`: invalid regular expression: missing argument to repetition operator: `*`

        hello a regex=t
        a: epoch 1 has t-0
        Stable 1/1: a@1[t-0]

        alive a regex=)
        a: INVALID_REGULAR_EXPRESSION subscribed topics `)`: invalid regular expression: unexpected )
    """)


def test_the_majority_chooses_the_assignor_and_an_unknown_one_is_rejected() -> None:
    Story().play("""
        topics t=2 u=2 →

        hello a t+u by=range
        a: epoch 1 has t-0 t-1 u-0 u-1
        Stable 1/1: a@1[t-0 t-1 u-0 u-1]

        hello b t+u
        b: epoch 2 has nothing
        Reconciling 2/2: a@1[t-0 t-1 u-0 u-1] b@2[?]

        alive a
        a: epoch 1 has t-0 u-0
        Reconciling 2/2: a@1[t-0 u-0 -t-1 -u-1] b@2[?]

        alive a owns=t-0,u-0
        a: epoch 2
        Reconciling 2/2: a@2[t-0 u-0] b@2[?]

        alive b
        b: epoch 2 has t-1 u-1
        Stable 2/2: a@2[t-0 u-0] b@2[t-1 u-1]

        hello c t by=sticky → c: UNSUPPORTED_ASSIGNOR group.remote.assignor = sticky: not one of uniform, range

        bye a
        a: epoch -1
        Assigning 3/2: b@2[t-1 u-1]

        alive b
        b: epoch 3 has t-0 t-1 u-0 u-1
        Stable 3/3: b@3[t-0 t-1 u-0 u-1]
    """)
