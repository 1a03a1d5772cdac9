"""The setting `partition.assignment.strategy`."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from ottla.client.consumer.assignors import RebalanceProtocol
from ottla.client.consumer.assignors.choice import DEFAULT, KNOWN, choose_assignors, common_protocol
from ottla.client.consumer.assignors.cooperative_sticky import CooperativeStickyAssignor
from ottla.client.consumer.assignors.range import RangeAssignor
from ottla.errors import ConfigError

JAVA = "org.apache.kafka.clients.consumer."


def mine(members: Any, partitions: Any, owned: Any) -> Any:
    return {}


@pytest.mark.behaviour("C13")
def test_names_classes_objects_and_functions_are_taken_in_order() -> None:
    chosen = choose_assignors(["sticky", f"{JAVA}RoundRobinAssignor", RangeAssignor, CooperativeStickyAssignor(), mine])
    assert list(chosen) == ["sticky", "roundrobin", "range", "cooperative-sticky", "mine"]


def test_any_callable_with_three_arguments_is_an_assignor() -> None:
    class Kept:
        name = "kept"

        def __call__(self, members: Any, partitions: Any, owned: Any) -> Any:
            return {}

    assert len(choose_assignors([Kept()])) == len(choose_assignors([partial(mine)])) == 1


def test_an_assignor_object_without_a_name_is_rejected_even_if_it_is_callable() -> None:
    class Nameless:
        def assign(self, cluster: Any, subscriptions: Any) -> Any:
            return {}

        def __call__(self, members: Any, partitions: Any, owned: Any) -> Any:
            return {}

    with pytest.raises(ConfigError, match="is not an assignor: it lacks name"):
        choose_assignors([Nameless()])


@pytest.mark.parametrize(("short", "known"), KNOWN.items())
def test_each_of_kafkas_has_the_name_that_kafka_gives_it(short: str, known: tuple[str, str]) -> None:
    assert list(choose_assignors([f"{JAVA}{known[1]}"])) == list(choose_assignors([short])) == [short]


@pytest.mark.parametrize(
    ("setting", "problem"),
    [
        ([], "is empty: name an assignor, such as range"),
        (["rnage"], "rnage"),
        (["range", RangeAssignor()], "two assignors named 'range'"),
        ([lambda members: {}], "must take three arguments, members, partitions, owned"),
        ([object()], "is not an assignor: it lacks name, supported_protocols"),
    ],
)
def test_an_object_that_is_no_assignor_is_one_clear_error(setting: Any, problem: str) -> None:
    with pytest.raises(ConfigError) as raised:
        choose_assignors(setting)
    assert problem in str(raised.value)
    assert str(raised.value).startswith("partition.assignment.strategy")


@pytest.mark.parametrize(
    ("names", "protocol"),
    [
        (DEFAULT, RebalanceProtocol.EAGER),
        (["cooperative-sticky"], RebalanceProtocol.COOPERATIVE),
        (["sticky"], RebalanceProtocol.EAGER),
    ],
)
def test_members_revoke_partitions_by_the_protocol_that_all_their_assignors_support(
    names: Any, protocol: RebalanceProtocol
) -> None:
    assert common_protocol(choose_assignors(names).values()) is protocol


def test_assignors_without_a_common_protocol_are_refused() -> None:
    class OnlyCooperative(CooperativeStickyAssignor):
        supported_protocols = (RebalanceProtocol.COOPERATIVE,)  # type: ignore[assignment]

    with pytest.raises(ConfigError, match="the assignors have no common rebalance protocol"):
        common_protocol([RangeAssignor(), OnlyCooperative()])
