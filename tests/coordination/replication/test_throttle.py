"""The throttle time of replicas."""

from __future__ import annotations

import pytest

from ottla.coordination.replication.throttle import WINDOW_SECONDS, WINDOWS, ReplicationThrottle, is_throttled


def test_a_follower_within_the_limit_is_not_throttled() -> None:
    throttle = ReplicationThrottle()
    for second in range(60):
        throttle.record(900, second)
        assert throttle.wait_seconds(1000, second) == 0


def test_an_excess_is_waited_out() -> None:
    throttle = ReplicationThrottle()
    throttle.record(30_000, 100.0)  # at 1000 a second, over ten windows
    held_back = throttle.wait_seconds(1000, 100.0)
    assert held_back == 20.0
    assert throttle.wait_seconds(1000, 100.0 + WINDOWS * WINDOW_SECONDS) == 0  # by then it is forgotten


def test_a_zero_limit_blocks_everything() -> None:
    assert ReplicationThrottle().wait_seconds(0, 0.0) > 0


@pytest.mark.parametrize(
    ("replicas", "are"),
    [((), False), (("*",), True), (("0:1", "3:2"), True), (("3:1", "2:2"), False), (("none",), False)],
)
def test_a_topic_config_lists_the_throttled_replicas(replicas: tuple[str, ...], are: bool) -> None:
    assert is_throttled(replicas, partition=3, broker=2) is are
