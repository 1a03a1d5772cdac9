"""Streams groups: membership, topologies, tasks, commits."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from ottla.coordination.groups.config import StreamsGroupConfig
from ottla.coordination.groups.events import TimerName
from ottla.coordination.groups.streams.streams_groups import INITIAL_DELAY, REVOCATION, SESSION
from tests.coordination.groups.streams.story import AT_ONCE, Story

ONE_RUNS = """
    topics in=2 →

    join a one
    epoch 2 has 0_0 0_1
    Stable 2/2: a@2[0_0 0_1]
"""
TWO_RUN = f"""{ONE_RUNS}
    join b one
    epoch 3 has nothing
    Reconciling 3/3: a@2[0_0 0_1] b@3[]

    alive a
    epoch 2 has 0_0
    Reconciling 3/3: a@2[0_0 -0_1] b@3[]
"""


def test_a_task_is_assigned_only_after_its_previous_owner_has_revoked_it() -> None:
    Story().play(f"""{TWO_RUN}
        alive b → epoch 3
        alive a keeps → epoch 2 has 0_0

        alive a
        epoch 3
        Reconciling 3/3: a@3[0_0] b@3[]

        alive b
        epoch 3 has 0_1
        Stable 3/3: a@3[0_0] b@3[0_1]
    """)


def test_a_heartbeat_without_tasks_does_not_acknowledge_a_revocation() -> None:
    Story().play(f"""{TWO_RUN}
        alive a owned=- → epoch 2
        alive b → epoch 3
    """)


def test_a_member_that_does_not_revoke_in_time_is_removed() -> None:
    story = Story().play(f"""{TWO_RUN}
        slow a
        Assigning 4/3: b@3[]

        alive b
        epoch 4 has 0_0 0_1
        Stable 4/4: b@4[0_0 0_1]

        alive a → UNKNOWN_MEMBER_ID
    """)

    assert story.alarms[TimerName(REVOCATION, "g", "a")] is None


def test_a_member_that_leaves_or_is_silent_starts_an_epoch() -> None:
    Story().play(f"""{TWO_RUN}
        bye a
        left
        Assigning 4/3: b@3[]

        alive b
        epoch 4 has 0_0 0_1
        Stable 4/4: b@4[0_0 0_1]

        quiet b
        Empty 5/5

        quiet b →
        alive b → UNKNOWN_MEMBER_ID
    """)


def test_other_epochs_are_fenced_and_a_lost_response_is_sent_again() -> None:
    Story().play(f"""{ONE_RUNS}
        alive a epoch=0 → INVALID_REQUEST
        alive a epoch=3 → FENCED_MEMBER_EPOCH
        alive a epoch=1 → FENCED_MEMBER_EPOCH
        join a one → epoch 2 has 0_0 0_1
        alive a → epoch 2
        bye x → UNKNOWN_MEMBER_ID
    """)


def test_a_group_that_does_not_exist_is_joined_first() -> None:
    Story().play("alive a epoch=3 → GROUP_ID_NOT_FOUND")


@pytest.mark.parametrize(
    ("topology", "error"),
    [
        ("regex", "INVALID_REQUEST"),
        ("fixed", "STREAMS_INVALID_TOPOLOGY"),
        ("nothing", "STREAMS_INVALID_TOPOLOGY"),
    ],
)
def test_an_invalid_topology_is_rejected(topology: str, error: str) -> None:
    Story().play(f"join a {topology} → {error}")


def test_internal_topics_are_created_before_tasks_are_assigned() -> None:
    story = Story().play("""
        topics in=2 →

        join a count
        epoch 2 has nothing
        MISSING_INTERNAL_TOPICS
        create log=2 rep=2
        NotReady 2/2: a@2[]

        alive a
        epoch 2
        MISSING_INTERNAL_TOPICS
        create log=2 rep=2

        topics log=2 rep=2 →

        alive a
        epoch 3 has 0_0 0_1 1_0 1_1
        Stable 3/3: a@3[0_0 0_1 1_0 1_1]
    """)

    group = story.machine.groups["g"]
    assert story.machine.configured(group).subtopologies["1"].changelog_topics[0].configs == {
        "cleanup.policy": "compact"
    }


def test_missing_source_topics_are_reported_until_they_exist() -> None:
    Story().play("""
        join a one
        epoch 2 has nothing
        MISSING_SOURCE_TOPICS
        NotReady 2/2: a@2[]

        topics in=1 →

        alive a
        epoch 3 has 0_0
        Stable 3/3: a@3[0_0]

        topics in=0 →

        alive a
        epoch 3 has nothing
        MISSING_SOURCE_TOPICS
        NotReady 4/4: a@3[-0_0]
    """)


def test_an_internal_topic_with_another_number_of_partitions_is_reported() -> None:
    story = Story().play("""
        topics in=2 rep=3 →

        join a count
        epoch 2 has nothing
        INCORRECTLY_PARTITIONED_TOPICS
        NotReady 2/2: a@2[]
    """)

    assert story.last.status is not None
    assert story.last.status[0].status_detail == "topic rep has 3 partitions, the application needs 2"


def test_a_repartition_topic_has_the_number_of_the_topic_it_is_joined_with() -> None:
    Story().play("""
        topics in=2 other=5 →

        join a join
        epoch 2 has nothing
        MISSING_INTERNAL_TOPICS
        create rep=5
        NotReady 2/2: a@2[]
    """)


def test_new_partitions_of_a_source_topic_are_new_tasks() -> None:
    Story().play(f"""{ONE_RUNS}
        topics in=3 →

        alive a
        epoch 3 has 0_0 0_1 0_2
        Stable 3/3: a@3[0_0 0_1 0_2]
    """)


def test_the_topology_of_a_group_does_not_change() -> None:
    Story().play(f"""{ONE_RUNS}
        join b newer → INVALID_REQUEST
        join b state → INVALID_REQUEST
    """)


def test_a_member_with_an_older_topology_is_informed() -> None:
    Story().play("""
        topics in=1 →

        join a newer
        epoch 2 has 0_0
        Stable 2/2: a@2[0_0]

        join b one
        epoch 3 has nothing
        STALE_TOPOLOGY
        Reconciling 3/3: a@2[0_0] b@3[]
    """)


def test_a_task_that_is_not_in_the_topology_is_rejected() -> None:
    story = Story().play(ONE_RUNS)
    request = story.heartbeat("alive", ["a"], {})
    assert request.active_tasks is not None
    request.active_tasks[0].partitions = [7]

    assert story.decide(request) == ["INVALID_REQUEST"]


def test_standby_tasks_are_at_other_processes() -> None:
    Story(replace(AT_ONCE, num_standby_replicas=1)).play("""
        topics in=2 log=2 →

        join a state process=p
        epoch 2 has 0_0 0_1
        Stable 2/2: a@2[0_0 0_1]

        join b state process=p
        epoch 3 has nothing
        Reconciling 3/3: a@2[0_0 0_1] b@3[]

        join c state process=q
        epoch 4 has s0_0 s0_1
        Reconciling 4/4: a@2[0_0 0_1] b@3[] c@4[s0_0 s0_1]
    """)


def test_a_standby_task_becomes_active_at_its_process_when_the_active_one_is_gone() -> None:
    Story(replace(AT_ONCE, num_standby_replicas=1)).play("""
        topics in=1 log=1 →

        join a state
        epoch 2 has 0_0
        Stable 2/2: a@2[0_0]

        join b state
        epoch 3 has s0_0
        Reconciling 3/3: a@2[0_0] b@3[s0_0]

        quiet a
        Assigning 4/3: b@3[s0_0]

        alive b
        epoch 3 has nothing
        Reconciling 4/4: b@3[-s0_0]

        alive b
        epoch 4 has 0_0
        Stable 4/4: b@4[0_0]
    """)


def test_the_first_assignment_waits_for_more_members() -> None:
    story = Story(StreamsGroupConfig()).play("""
        topics in=2 →

        join a one
        epoch 1 has nothing
        ASSIGNMENT_DELAYED
        Assigning 2/1: a@1[]

        join b one
        epoch 1 has nothing
        ASSIGNMENT_DELAYED
        Assigning 3/1: a@1[] b@1[]

        due
        Reconciling 3/3: a@1[] b@1[]

        alive a
        epoch 3 has 0_0
        Reconciling 3/3: a@3[0_0] b@1[]

        alive b
        epoch 3 has 0_1
        Stable 3/3: a@3[0_0] b@3[0_1]
    """)

    assert story.alarms[TimerName(INITIAL_DELAY, "g")] == 3.0
    assert story.alarms[TimerName(SESSION, "g", "a")] == 45.0


def test_two_assignments_have_the_interval_between_them() -> None:
    Story(replace(AT_ONCE, assignment_interval_ms=1000)).play("""
        topics in=2 →
        clock 5000 →

        join a one
        epoch 2 has 0_0 0_1
        Stable 2/2: a@2[0_0 0_1]

        clock 5999 →

        join b one
        epoch 2 has nothing
        ASSIGNMENT_DELAYED
        Assigning 3/2: a@2[0_0 0_1] b@2[]

        clock 6000 →

        alive b
        epoch 3
        Reconciling 3/3: a@2[0_0 0_1] b@3[]
    """)


def test_a_static_member_returns_to_its_tasks() -> None:
    Story().play("""
        topics in=1 →

        join a one instance=i process=p
        epoch 2 has 0_0
        Stable 2/2: a@2[0_0]

        join b one instance=i process=p → UNRELEASED_INSTANCE_ID

        pause a instance=i
        left
        Reconciling 2/2: a@-2[0_0]

        join b one instance=i process=p
        epoch 2 has 0_0
        Stable 2/2: b@2[0_0]

        alive a instance=i → FENCED_INSTANCE_ID
        alive b instance=x → UNKNOWN_MEMBER_ID
        pause b → INVALID_REQUEST
    """)


def test_a_full_group_takes_no_member_more() -> None:
    Story(replace(AT_ONCE, max_size=1)).play(f"""{ONE_RUNS}
        join b one → GROUP_MAX_SIZE_REACHED
        join a one → epoch 2 has 0_0 0_1
    """)


def test_all_members_are_informed_when_one_stops_the_application() -> None:
    story = Story().play(f"""{ONE_RUNS}
        alive a shutdown
        epoch 2
        SHUTDOWN_APPLICATION

        join b one
        epoch 3 has nothing
        SHUTDOWN_APPLICATION
        Reconciling 3/3: a@2[0_0 0_1] b@3[]

        bye b
        left
        Assigning 4/3: a@2[0_0 0_1]

        bye a
        left
        Empty 5/5

        join c one
        epoch 6 has 0_0 0_1
        Stable 6/6: c@6[0_0 0_1]
    """)

    assert "Member a has requested to stop the application of streams group g." in story.notes


def test_members_with_endpoints_are_listed_with_their_partitions() -> None:
    story = Story().play("""
        topics in=2 →

        join a one port=8080
        epoch 2 has 0_0 0_1
        Stable 2/2: a@2[0_0 0_1]
    """)
    found = story.last.partitions_by_user_endpoint
    story.play("alive a known=1 → epoch 2")

    assert story.last.endpoint_information_epoch == 1
    assert story.last.partitions_by_user_endpoint is None
    assert found is not None
    assert [(each.user_endpoint.port, each.active_partitions[0].partitions) for each in found] == [(8080, [0, 1])]


def test_a_member_without_the_required_tags_is_informed() -> None:
    Story(replace(AT_ONCE, rack_aware_assignment_tags=("zone",))).play("""
        topics in=1 →

        join a one
        epoch 2 has 0_0
        MISSING_CLIENT_TAGS
        Stable 2/2: a@2[0_0]

        join b one zone=z
        epoch 3 has nothing
        Reconciling 3/3: a@2[0_0] b@3[]
    """)


def test_reported_offsets_are_kept_until_the_member_is_gone() -> None:
    story = Story().play(f"""{ONE_RUNS}
        alive a offset=7 → epoch 2
    """)
    reported = story.volatile.reported["a"].offsets
    story.play("""
        bye a
        left
        Empty 3/3
    """)

    assert reported == {("0", 0): 7}
    assert story.volatile.reported == {}


def test_commits_need_the_epoch_of_the_member_or_a_task_that_it_had_since() -> None:
    Story().play(f"""{TWO_RUN}
        commit a in-0 → NONE
        commit a in-0 version=8 → UNSUPPORTED_VERSION
        commit x in-0 → UNKNOWN_MEMBER_ID
        commit a in-0 epoch=9 → STALE_MEMBER_EPOCH

        alive a
        epoch 3
        Reconciling 3/3: a@3[0_0] b@3[]

        commit a in-0 epoch=2 → NONE
        commit a in-0 epoch=1 → STALE_MEMBER_EPOCH
        commit a in-1 epoch=2 → STALE_MEMBER_EPOCH
        commit a other-0 epoch=2 → STALE_MEMBER_EPOCH
        txn-commit a in-1 epoch=2 → STALE_MEMBER_EPOCH
        txn-commit a in-1 epoch=2 version=5 → ILLEGAL_GENERATION
        txn-commit ? in-1 epoch=-1 → NONE
        commit ? in-1 epoch=-1 → UNKNOWN_MEMBER_ID

        bye a
        left
        Assigning 4/3: b@3[]

        bye b
        left
        Empty 5/5

        commit ? in-1 epoch=-1 → NONE
    """)


def test_a_restarted_coordinator_continues_where_the_log_ends() -> None:
    story = Story().play(TWO_RUN).restart()

    story.play("""
        alive a
        epoch 3
        Reconciling 3/3: a@3[0_0] b@3[]

        alive b
        epoch 3 has 0_1
        Stable 3/3: a@3[0_0] b@3[0_1]
    """)
    assert story.alarms[TimerName(REVOCATION, "g", "a")] is None


def test_the_settings_of_a_group_start_an_epoch_when_they_change() -> None:
    story = Story().play("""
        topics in=1 log=1 →

        join a state
        epoch 2 has 0_0
        Stable 2/2: a@2[0_0]

        join b state
        epoch 3 has nothing
        Reconciling 3/3: a@2[0_0] b@3[]
    """)

    story.machine.settings = {"g": {"streams_num_standby_replicas": 1, "streams_heartbeat_interval_ms": 700}}
    story.play("""
        alive b
        epoch 4 has s0_0
        Reconciling 4/4: a@2[0_0] b@4[s0_0]
    """)
    assert story.last.heartbeat_interval_ms == 700


def test_a_group_is_deleted_with_all_its_records() -> None:
    story = Story().play(f"""{ONE_RUNS}
        bye a
        left
        Empty 3/3
    """)

    story.do("remove", [], {})

    assert story.machine.groups == {}


def test_what_happens_in_a_group_is_noted() -> None:
    story = Story().play(f"""{ONE_RUNS}
        bye a
        left
        Empty 3/3
    """)

    assert story.notes == [
        "Member a joined streams group g.",
        "Streams group g is in epoch 2 (a member has joined or changed).",
        "Streams group g has a target assignment for epoch 2: 1 members.",
        "Member a of streams group g is in epoch 2, STABLE, with 2 tasks and 0 to revoke.",
        "Member a was removed from streams group g: it has left.",
        "Streams group g is in epoch 3 (member a is removed: it has left).",
    ]
