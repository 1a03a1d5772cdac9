"""Invariants of every assignment, for any previous state of the group."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.client.consumer.assignors import Subscription
from ottla.client.consumer.assignors.choice import KNOWN, create_by_name
from ottla.client.consumer.assignors.sticky import user_data
from ottla.model import TopicPartition
from tests.client.consumer.assignors.cases import Case, random_case
from tests.client.consumer.assignors.clusters import Shares, members, plain, shares_of

STICKY = ("sticky", "cooperative-sticky")


def case_of(name: str, seed: int) -> Case:
    return random_case(name, Random(seed))


def wanted(case: Case) -> set[TopicPartition]:
    """Return all existing partitions with subscribers."""
    topics = {topic for subscription in case.members.values() for topic in subscription.topics}
    return {TopicPartition(t, n) for t in topics for n in range(len(case.topics.get(t, ())))}


def after(case: Case, shares: Shares) -> Case:
    """Return the same group after all members have got their assignments."""
    generation = 10 + max(subscription.generation_id for subscription in case.members.values())
    sticky = case.assignor == "sticky"
    joined: dict[str, Subscription] = {
        member: replace(
            subscription,
            owned_partitions=() if sticky else tuple(shares[member]),
            user_data=user_data(list(shares[member]), generation) if sticky else None,
            generation_id=generation,
        )
        for member, subscription in case.members.items()
    }
    return replace(case, members=joined)


def settled(case: Case) -> Shares:
    """Return the assignment after a rebalance and the up to three that follow from it."""
    shares = case.shares(create_by_name(case.assignor))
    for _ in range(3):
        if case.assignor == "cooperative-sticky" and set().union(*shares.values()) != wanted(case):
            shares = after(case, shares).shares(create_by_name(case.assignor))
    return shares


def without_racks(case: Case) -> Case:
    """Return the same without racks. With racks and different subscriptions, a sticky assignor, Java's too, may move a
    partition back and forth between a near and an even assignment.
    """
    return replace(case, members={member: replace(s, rack_id=None) for member, s in case.members.items()})


def without_disputes(case: Case) -> Case:
    """The same without two members that claim the same partition."""
    claimed: set[TopicPartition] = set()
    members: dict[str, Subscription] = {}
    for member, subscription in case.members.items():
        owned = [tp for tp in subscription.owned_partitions if tp not in claimed]
        claimed.update(owned)
        members[member] = replace(subscription, owned_partitions=owned)
    return replace(case, members=members)


@pytest.mark.behaviour("C14")
@pytest.mark.parametrize("name", KNOWN)
@given(seed=st.integers(0, 2**32))
def test_each_partition_has_one_owner_that_subscribes_to_its_topic(name: str, seed: int) -> None:
    case = case_of(name, seed) if name != "cooperative-sticky" else without_racks(case_of(name, seed))
    shares = settled(case)
    assert shares.keys() == case.members.keys()
    assert sorted(tp for mine in shares.values() for tp in mine) == sorted(wanted(case))
    assert all(tp.topic in case.members[member].topics for member, mine in shares.items() for tp in mine)


@pytest.mark.parametrize("name", KNOWN)
@given(seed=st.integers(0, 2**32))
def test_with_equal_subscriptions_partition_counts_differ_by_at_most_one(name: str, seed: int) -> None:
    case = case_of(name, seed)
    topics = next(iter(case.members.values())).topics
    case.members = {member: replace(subscription, topics=topics) for member, subscription in case.members.items()}
    sizes = [len(mine) for mine in settled(case).values()]
    assert max(sizes) - min(sizes) <= (len(topics) if name == "range" else 1)


@pytest.mark.parametrize("name", STICKY)
@given(seed=st.integers(0, 2**32))
def test_a_balanced_group_keeps_its_assignment(name: str, seed: int) -> None:
    case = without_racks(case_of(name, seed))
    shares = settled(case)
    assert after(case, shares).shares(create_by_name(name)) == shares


@pytest.mark.parametrize("name", STICKY)
@pytest.mark.parametrize("change", ["leaves", "joins"])
@given(count=st.integers(2, 9), partitions=st.integers(1, 30))
def test_as_few_partitions_move_as_can_be(name: str, change: str, count: int, partitions: int) -> None:
    group = members(*(f"m{n}" for n in range(count)), topics=["t"])
    case = Case(name, {}, {"t": [[]] * partitions}, group)
    before = settled(case)
    joined = after(case, before)
    if change == "leaves":
        del joined.members["m0"]
        must = len(before["m0"])
    else:
        joined.members["new"] = Subscription(topics=["t"])
        must = partitions // (count + 1)
    now = settled(joined)
    assert sum(len(now[member] - before.get(member, frozenset())) for member in now) == must


@given(seed=st.integers(0, 2**32))
def test_a_cooperative_member_gets_no_partition_that_another_still_owns(seed: int) -> None:
    case = without_disputes(case_of("cooperative-sticky", seed))
    shares = case.shares(create_by_name("cooperative-sticky"))
    for member, subscription in case.members.items():
        for other, mine in shares.items():
            assert other == member or mine.isdisjoint(subscription.owned_partitions)


@pytest.mark.parametrize("name", STICKY)
def test_deleted_partitions_are_not_assigned(name: str) -> None:
    case = Case(name, {}, {"t": [[]] * 2}, members("a", "b", topics=["t"]))
    owned = [TopicPartition("t", 1), TopicPartition("t", 5), TopicPartition("gone", 0)]
    case.members["a"] = replace(
        case.members["a"], owned_partitions=owned, generation_id=1, user_data=user_data(owned, 1)
    )
    assert settled(case) == {"a": {TopicPartition("t", 1)}, "b": {TopicPartition("t", 0)}}


@pytest.mark.parametrize("name", KNOWN)
def test_a_pattern_without_matches_gets_no_partitions(name: str) -> None:
    group = {"a": Subscription(topics=()), "b": Subscription(topics=["t"])}
    assert shares_of(create_by_name(name).assign(plain(t=2), group)) == {
        "a": frozenset(),
        "b": {TopicPartition("t", 0), TopicPartition("t", 1)},
    }
    assert create_by_name(name).assign(plain(t=2), {}) == {}
