"""The assignor of share groups."""

from __future__ import annotations

from collections import Counter
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from ottla.coordination.groups.share.simple_assignor import ShareGroupSpec, assign_simply

T, U = UUID(int=1), UUID(int=2)


def spec_of(
    members: int, counts: dict[UUID, int], before: dict[str, frozenset[tuple[UUID, int]]] | None = None
) -> ShareGroupSpec:
    topics = frozenset(counts)
    partitions = {topic_id: range(count) for topic_id, count in counts.items()}
    return ShareGroupSpec(partitions, {f"m{number:03}": topics for number in range(members)}, before or {})


def frozen(assignment: dict[str, set[tuple[UUID, int]]]) -> dict[str, frozenset[tuple[UUID, int]]]:
    return {name: frozenset(found) for name, found in assignment.items()}


@given(st.integers(1, 12), st.integers(0, 7), st.integers(0, 5))
def test_members_and_partitions_are_balanced(members: int, first: int, second: int) -> None:
    assignment = assign_simply(spec_of(members, {T: first, U: second}))

    sizes = [len(found) for found in assignment.values()]
    sharers = Counter(partition for found in assignment.values() for partition in found)
    assert len(assignment) == members
    assert max(sizes) - min(sizes) <= 1
    assert len(sharers) == first + second, "each partition has a member"
    assert not sharers or max(sharers.values()) == -(-members // (first + second))


@given(st.integers(1, 12), st.integers(0, 7), st.integers(0, 5))
def test_an_assignment_that_is_computed_again_is_the_same(members: int, first: int, second: int) -> None:
    spec = spec_of(members, {T: first, U: second})
    once = assign_simply(spec)

    assert assign_simply(ShareGroupSpec(spec.partitions, spec.readers, frozen(once))) == once


@given(st.integers(1, 10), st.integers(1, 12))
def test_a_member_that_joins_takes_no_more_than_its_part(members: int, count: int) -> None:
    before = frozen(assign_simply(spec_of(members, {T: count})))
    after = assign_simply(spec_of(members + 1, {T: count}, before))

    newcomer = f"m{members:03}"
    gained = sum(len(found - before.get(name, frozenset())) for name, found in after.items() if name != newcomer)
    if members + 1 <= count:
        assert gained <= len(after[newcomer]), "partitions move to the new member only, up to rounding"
    assert after[newcomer]


def test_partitions_are_divided_topic_by_topic_among_members_that_read_different_ones() -> None:
    readers = {"a": frozenset({T}), "b": frozenset({T, U}), "c": frozenset({U})}

    assignment = assign_simply(ShareGroupSpec({T: range(2), U: range(4)}, readers))

    assert assignment == {"a": {(T, 0)}, "b": {(T, 1), (U, 0), (U, 2)}, "c": {(U, 1), (U, 3)}}


def test_a_topic_without_readers_is_not_assigned() -> None:
    assignment = assign_simply(ShareGroupSpec({T: range(2), U: range(4)}, {"a": frozenset({T}), "b": frozenset()}))

    assert assignment == {"a": {(T, 0), (T, 1)}, "b": set()}


def test_a_topic_that_the_only_member_does_not_read_is_not_assigned() -> None:
    assert assign_simply(ShareGroupSpec({T: range(1), U: range(1)}, {"a": frozenset({U})})) == {"a": {(U, 0)}}


def test_a_deleted_partition_is_not_kept() -> None:
    before = {"m000": frozenset({(T, 0), (T, 5), (U, 0)})}

    assert assign_simply(spec_of(1, {T: 2}, before)) == {"m000": {(T, 0), (T, 1)}}
