"""The placement of new partitions: different brokers and racks, leaders on every broker, no fenced broker if avoidable."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.coordination.cluster.topic_request import Refusal
from ottla.coordination.controller.placement import UsableBroker, stripe_partitions


def racks(**names: str) -> list[UsableBroker]:
    """Brokers by their racks; one in brackets is fenced: `a="1 2 (3)"`."""
    return [
        UsableBroker(int(broker.strip("()")), rack, broker.startswith("("))
        for rack, brokers in names.items()
        for broker in brokers.split()
    ]


THREE = racks(a="1 2 3", b="4 5 6", c="7 8 9")


@given(st.integers(0, 2**63))
def test_the_replicas_of_a_partition_are_in_different_racks(seed: int) -> None:
    rack_of = {each.broker_id: each.rack for each in THREE}
    for replicas in stripe_partitions(THREE, 30, 3, seed):
        assert sorted(str(rack_of[each]) for each in replicas) == ["a", "b", "c"]


@given(st.sampled_from([THREE, racks(a="1 2 3 4 5 6 7 8 9")]), st.integers(1, 5), st.integers(0, 2**63))
def test_every_broker_leads_equally_often(brokers: list[UsableBroker], rounds: int, seed: int) -> None:
    leaders = Counter(replicas[0] for replicas in stripe_partitions(brokers, 9, 3, seed))
    assert set(leaders.values()) == {1}
    copies = Counter(each for replicas in stripe_partitions(THREE, 9 * rounds, 3, seed) for each in replicas)
    assert max(copies.values()) - min(copies.values()) <= rounds


def test_a_seed_determines_the_placement() -> None:
    assert stripe_partitions(THREE, 20, 3, 7) == stripe_partitions(THREE, 20, 3, 7)
    assert len({tuple(stripe_partitions(THREE, 20, 3, seed)) for seed in range(20)}) > 10


def test_a_fenced_broker_leads_nothing_and_gets_replicas_only_if_no_other_is_left() -> None:
    brokers = racks(a="1 2 (3)")
    assert all(set(replicas) == {1, 2} for replicas in stripe_partitions(brokers, 6, 2, 1))
    assert all(replicas[2] == 3 for replicas in stripe_partitions(brokers, 6, 3, 1))


def test_a_rack_without_unfenced_brokers_gets_followers() -> None:
    brokers = racks(a="(1)", b="2", c="3")
    for replicas in stripe_partitions(brokers, 12, 3, 5):
        assert replicas[0] != 1
        assert set(replicas) == {1, 2, 3}


@given(
    st.lists(st.tuples(st.sampled_from([None, "a", "b", "c"]), st.booleans()), min_size=1, max_size=8),
    st.integers(1, 8),
    st.integers(0, 99),
)
def test_no_partition_has_two_replicas_on_one_broker(
    drawn: list[tuple[str | None, bool]], copies: int, seed: int
) -> None:
    brokers = [UsableBroker(number, rack, fenced) for number, (rack, fenced) in enumerate(drawn)]
    present = {each.broker_id for each in brokers if not each.is_fenced}
    if not present or copies > len(brokers):
        with pytest.raises(Refusal):
            stripe_partitions(brokers, 5, copies, seed)
        return
    for replicas in stripe_partitions(brokers, 20, copies, seed):
        assert len(set(replicas)) == copies
        assert replicas[0] in present


@pytest.mark.parametrize(
    ("brokers", "copies", "sentence"),
    [
        (THREE, 0, "0 replicas: at least one"),
        (THREE, 10, "a replication factor of 10 needs as many brokers, and 9 brokers can take replicas"),
        (racks(a="(1) (2)"), 1, "all brokers that take partitions unasked are fenced"),
        ([], 1, r"no broker takes partitions unasked.*`cordoned.log.dirs`"),
    ],
)
def test_an_impossible_placement_is_rejected_with_the_reason(
    brokers: list[UsableBroker], copies: int, sentence: str
) -> None:
    with pytest.raises(Refusal, match=sentence):
        stripe_partitions(brokers, 1, copies, 1)
