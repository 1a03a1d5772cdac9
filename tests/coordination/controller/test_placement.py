"""Where new partitions lie: each in other brokers of other racks, leaders everywhere, nothing on who is not there if it can be helped."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.coordination.cluster.topic_request import Refusal
from ottla.coordination.controller.placement import UsableBroker, place


def racks(**names: str) -> list[UsableBroker]:
    """Brokers by their racks; one in brackets is fenced: `a="1 2 (3)"`."""
    return [
        UsableBroker(int(broker.strip("()")), rack, broker.startswith("("))
        for rack, brokers in names.items()
        for broker in brokers.split()
    ]


THREE = racks(a="1 2 3", b="4 5 6", c="7 8 9")


@given(st.integers(0, 2**63))
def test_the_copies_of_a_partition_lie_in_different_racks(seed: int) -> None:
    rack_of = {each.broker_id: each.rack for each in THREE}
    for replicas in place(THREE, 30, 3, seed):
        assert sorted(str(rack_of[each]) for each in replicas) == ["a", "b", "c"]


@given(st.sampled_from([THREE, racks(a="1 2 3 4 5 6 7 8 9")]), st.integers(1, 5), st.integers(0, 2**63))
def test_every_broker_leads_as_often_as_every_other(brokers: list[UsableBroker], rounds: int, seed: int) -> None:
    leaders = Counter(replicas[0] for replicas in place(brokers, 9, 3, seed))
    assert set(leaders.values()) == {1}
    copies = Counter(each for replicas in place(THREE, 9 * rounds, 3, seed) for each in replicas)
    assert max(copies.values()) - min(copies.values()) <= rounds


def test_the_same_seed_lays_out_the_same_and_another_another() -> None:
    assert place(THREE, 20, 3, 7) == place(THREE, 20, 3, 7)
    assert len({tuple(place(THREE, 20, 3, seed)) for seed in range(20)}) > 10


def test_who_is_fenced_leads_nothing_and_copies_only_where_nobody_else_is_left() -> None:
    brokers = racks(a="1 2 (3)")
    assert all(set(replicas) == {1, 2} for replicas in place(brokers, 6, 2, 1))
    assert all(replicas[2] == 3 for replicas in place(brokers, 6, 3, 1))


def test_a_rack_in_which_nobody_could_lead_still_copies() -> None:
    brokers = racks(a="(1)", b="2", c="3")
    for replicas in place(brokers, 12, 3, 5):
        assert replicas[0] != 1
        assert set(replicas) == {1, 2, 3}


@given(
    st.lists(st.tuples(st.sampled_from([None, "a", "b", "c"]), st.booleans()), min_size=1, max_size=8),
    st.integers(1, 8),
    st.integers(0, 99),
)
def test_wherever_brokers_are_no_partition_has_two_copies_on_one(
    drawn: list[tuple[str | None, bool]], copies: int, seed: int
) -> None:
    brokers = [UsableBroker(number, rack, fenced) for number, (rack, fenced) in enumerate(drawn)]
    present = {each.broker_id for each in brokers if not each.fenced}
    if not present or copies > len(brokers):
        with pytest.raises(Refusal):
            place(brokers, 5, copies, seed)
        return
    for replicas in place(brokers, 20, copies, seed):
        assert len(set(replicas)) == copies
        assert replicas[0] in present


@pytest.mark.parametrize(
    ("brokers", "copies", "sentence"),
    [
        (THREE, 0, "0 replicas: at least one"),
        (THREE, 10, r"10 replicas cannot be put on 9 broker\(s\)"),
        (racks(a="(1) (2)"), 1, "all brokers that take partitions unasked are fenced"),
        ([], 1, r"no broker takes partitions unasked.*`cordoned.log.dirs`"),
    ],
)
def test_what_cannot_be_placed_is_said_in_a_sentence(brokers: list[UsableBroker], copies: int, sentence: str) -> None:
    with pytest.raises(Refusal, match=sentence):
        place(brokers, 1, copies, 1)
