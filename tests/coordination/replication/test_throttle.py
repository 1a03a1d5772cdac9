"""How long copies are held back by what they took."""

from __future__ import annotations

import pytest

from ottla.coordination.replication.throttle import WINDOW_SECONDS, WINDOWS, ReplicationThrottle, names


def test_who_takes_no_more_than_the_limit_is_not_held_back() -> None:
    throttle = ReplicationThrottle()
    for second in range(60):
        throttle.record(900, second)
        assert throttle.wait(1000, second) == 0


def test_what_was_too_much_is_waited_out() -> None:
    throttle = ReplicationThrottle()
    throttle.record(30_000, 100.0)  # at 1000 a second, over ten windows
    held_back = throttle.wait(1000, 100.0)
    assert held_back == 20.0
    assert throttle.wait(1000, 100.0 + WINDOWS * WINDOW_SECONDS) == 0  # by then it is forgotten


def test_a_limit_of_nothing_lets_nothing_through() -> None:
    assert ReplicationThrottle().wait(0, 0.0) > 0


@pytest.mark.parametrize(
    ("replicas", "are"),
    [((), False), (("*",), True), (("0:1", "3:2"), True), (("3:1", "2:2"), False), (("none",), False)],
)
def test_a_topic_names_the_copies_that_are_throttled(replicas: tuple[str, ...], are: bool) -> None:
    assert names(replicas, partition=3, broker=2) is are
