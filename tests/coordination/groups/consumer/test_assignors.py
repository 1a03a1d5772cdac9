"""Guarantees of the assignors for any members and topics: all partitions are assigned, evenly, with few moves."""

from __future__ import annotations

import time
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from ottla.coordination.groups.consumer.group_spec import GroupAssignment, GroupSpec, PartitionAssignor
from ottla.coordination.groups.consumer.range_assignor import assign_ranges
from ottla.coordination.groups.consumer.uniform_assignor import assign_uniformly

IDS = [UUID(int=number) for number in range(1, 5)]
TOPICS = st.dictionaries(st.sampled_from(IDS), st.integers(1, 9), min_size=1)
MEMBERS = st.lists(st.sampled_from("abcdefg"), min_size=1, unique=True)


@st.composite
def group_specs(draw: st.DrawFn, *, alike: bool = False) -> GroupSpec:
    topics = draw(TOPICS)
    every = frozenset(topics)
    subset = st.just(every) if alike else st.frozensets(st.sampled_from(sorted(topics)), min_size=0)
    readers = {member: draw(subset) for member in sorted(draw(MEMBERS))}
    read = frozenset().union(*readers.values())
    return GroupSpec({topic_id: count for topic_id, count in topics.items() if topic_id in read}, readers)


def again(wanted: GroupSpec, assignment: GroupAssignment) -> GroupSpec:
    """The same members once more, with what they were given."""
    return GroupSpec(
        wanted.topics, wanted.readers, {member_id: frozenset(places) for member_id, places in assignment.items()}
    )


def check_whole(wanted: GroupSpec, assignment: GroupAssignment) -> None:
    """Check that each partition of a subscribed topic is assigned to one subscribed member."""
    given_away = [place for places in assignment.values() for place in places]
    assert len(given_away) == len(set(given_away)) == sum(wanted.topics.values())
    assert assignment.keys() == wanted.readers.keys()
    assert all(place[0] in wanted.readers[member_id] for member_id in assignment for place in assignment[member_id])


def spread(assignment: GroupAssignment) -> int:
    sizes = [len(places) for places in assignment.values()]
    return max(sizes) - min(sizes)


def check_stays(assign: PartitionAssignor, wanted: GroupSpec) -> None:
    first = assign(wanted)
    assert assign(again(wanted, first)) == first


@given(group_specs())
def test_the_uniform_assignor_assigns_every_partition_and_is_stable(wanted: GroupSpec) -> None:
    check_whole(wanted, assign_uniformly(wanted))
    check_stays(assign_uniformly, wanted)


@given(group_specs())
def test_the_range_assignor_assigns_every_partition_and_is_stable(wanted: GroupSpec) -> None:
    check_whole(wanted, assign_ranges(wanted))
    check_stays(assign_ranges, wanted)


@given(group_specs())
def test_no_member_has_two_partitions_more_than_another_that_could_own_one(wanted: GroupSpec) -> None:
    assignment = assign_uniformly(wanted)
    for giver, places in assignment.items():
        for taker, topics in wanted.readers.items():
            if any(place[0] in topics for place in places):
                assert len(places) <= len(assignment[taker]) + 1, (giver, taker)


@given(group_specs(alike=True))
def test_a_new_member_takes_its_share_and_nothing_else_moves(wanted: GroupSpec) -> None:
    before = assign_uniformly(wanted)
    more = GroupSpec(
        wanted.topics,
        {**wanted.readers, "z": frozenset(wanted.topics)},
        {member_id: frozenset(places) for member_id, places in before.items()},
    )
    after = assign_uniformly(more)
    assert spread(after) <= 1
    for member_id, places in before.items():
        assert after[member_id] <= places, "nobody who was there is given something else"


@given(group_specs(alike=True), st.data())
def test_partitions_of_a_leaving_member_move_to_the_others_which_keep_theirs(
    wanted: GroupSpec, data: st.DataObject
) -> None:
    before = assign_uniformly(wanted)
    leaver = data.draw(st.sampled_from(sorted(before)))
    readers = {member_id: topics for member_id, topics in wanted.readers.items() if member_id != leaver}
    if not readers:
        return
    after = assign_uniformly(
        GroupSpec(wanted.topics, readers, {member_id: frozenset(places) for member_id, places in before.items()})
    )
    assert spread(after) <= 1
    assert all(after[member_id] >= before[member_id] for member_id in readers)


@given(st.integers(1, 9), st.integers(1, 9), MEMBERS)
def test_the_range_assignor_assigns_topics_of_equal_size_alike(count: int, topics: int, members: list[str]) -> None:
    ids = [UUID(int=number) for number in range(1, topics + 1)]
    assignment = assign_ranges(GroupSpec(dict.fromkeys(ids, count), dict.fromkeys(members, frozenset(ids))))
    for places in assignment.values():
        by_topic = [{index for topic_id, index in places if topic_id == each} for each in ids]
        assert all(indexes == by_topic[0] for indexes in by_topic)
        indexes = sorted(by_topic[0])
        assert indexes == list(range(indexes[0], indexes[-1] + 1)) if indexes else True


def seconds_to_assign(members: int, partitions: int) -> float:
    """Processor time of the uniform assignor for members that read all of ten topics, or all but one."""
    topics = {UUID(int=number): partitions // 10 for number in range(10)}
    readers = {
        f"m{number}": frozenset(topics) - ({UUID(int=number % 10)} if number % 2 else set())
        for number in range(members)
    }
    begun = time.thread_time()
    assignment = assign_uniformly(GroupSpec(topics, readers))
    spent = time.thread_time() - begun
    assert spread(assignment) <= 1
    return spent


def test_ten_times_as_many_members_do_not_take_ten_times_as_long() -> None:
    few = min(seconds_to_assign(100, 10_000) for _ in range(3))
    many = min(seconds_to_assign(1_000, 10_000) for _ in range(3))
    assert many < 4 * few
