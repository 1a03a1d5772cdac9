"""An assignor of the user's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from ottla.client.consumer.assignors import Subscription
from ottla.client.consumer.assignors.function import FunctionAssignor
from ottla.errors import AssignmentError
from ottla.model import TopicPartition
from tests.client.consumer.assignors.clusters import format_assignments, members, plain

GROUP = members("a", "b", topics=["t"])


@pytest.mark.behaviour("C13")
def test_an_assignor_function_gets_the_whole_group_and_decides() -> None:
    heard = []

    def last_one_takes_all(
        members: Mapping[str, Sequence[str]],
        partitions: Mapping[str, int],
        owned: Mapping[str, Sequence[TopicPartition]],
    ) -> dict[str, list[tuple[str, int]]]:
        heard.append((members, partitions, owned))
        return {max(members): [(topic, n) for topic, count in partitions.items() for n in range(count)]}

    had = TopicPartition("t", 1)
    group = GROUP | {"a": Subscription(topics=["t"], owned_partitions=[had])}
    assert format_assignments(FunctionAssignor(last_one_takes_all), plain(t=2, u=1), group) == {"a": "", "b": "tp0 tp1"}
    assert heard == [({"a": ["t"], "b": ["t"]}, {"t": 2}, {"a": [had], "b": []})]


def test_an_assignor_function_gives_the_assignor_its_name() -> None:
    def nearest(members: Any, partitions: Any, owned: Any) -> Any:
        return {}

    assert FunctionAssignor(nearest).name == "nearest"
    assert FunctionAssignor(nearest, "by-distance").name == "by-distance"


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (None, "returned None, not a mapping of member ids to lists of partitions"),
        ({"c": []}, "named member 'c', which is not in the group: a, b"),
        ({"a": [("t", 2)]}, "gave t-2 to 'a', which does not exist: topic 't' has 2 partitions with subscribers"),
        ({"a": [("u", 0)]}, "gave u-0 to 'a', which does not exist: topic 'u' has 0 partitions with subscribers"),
        ({"a": [("t", 0)], "b": [("t", 0)]}, "gave t-0 twice: to 'a' and to 'b'; it must have one owner"),
        ({"a": [("t", 0), ("t", 0)]}, "gave t-0 twice: to 'a' and to 'a'"),
        ({"a": "t-0"}, "gave 't-0' to 'a', which is not a list of partitions"),
        ({"a": 7}, "gave 7 to 'a', which is not a list of partitions"),
        ({"a": ["t"]}, "gave 't' to 'a', which is not a (topic, partition)"),
    ],
)
def test_an_invalid_assignment_is_one_clear_error(answer: Any, problem: str) -> None:
    assignor = FunctionAssignor(lambda members, partitions, owned: answer, "mine")
    with pytest.raises(AssignmentError) as raised:
        assignor.assign(plain(t=2, u=1), GROUP)
    assert problem in str(raised.value)
    assert str(raised.value).startswith("assignor 'mine' ")
