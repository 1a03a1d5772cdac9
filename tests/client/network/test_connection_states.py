from __future__ import annotations

from random import Random

from ottla.client.network.connection_states import ConnectionState, ConnectionStates
from ottla.client.runtime.backoff import ExponentialBackoff


class NoJitter(Random):
    def uniform(self, a: float, b: float) -> float:
        return 1.0


def states() -> ConnectionStates:
    chance = NoJitter()
    return ConnectionStates(ExponentialBackoff(50, 1000, chance), ExponentialBackoff(10_000, 30_000, chance))


def test_a_new_broker_may_be_connected_to_at_once() -> None:
    assert states().can_connect(1, now=0)


def test_a_failure_is_followed_by_a_pause_that_grows() -> None:
    nodes = states()
    for attempt, pause in enumerate([0.05, 0.1, 0.2]):
        nodes.connecting(1, now=attempt)
        nodes.disconnected(1, "refused", now=attempt)
        assert not nodes.can_connect(1, now=attempt + pause - 0.01)
        assert nodes.can_connect(1, now=attempt + pause)


def test_setting_up_may_take_longer_after_each_failure() -> None:
    nodes = states()
    spans = []
    for _ in range(4):
        spans.append(nodes.connecting(1, now=0))
        nodes.disconnected(1, "timed out", now=0)
    assert spans == [10, 20, 30, 30]


def test_a_ready_connection_forgets_the_failures() -> None:
    nodes = states()
    for _ in range(5):
        nodes.connecting(1, now=0)
        nodes.disconnected(1, "refused", now=0)
    nodes.connecting(1, now=10)
    nodes.checking_api_versions(1)
    assert not nodes.is_ready(1, now=10)
    nodes.ready(1)
    assert nodes.is_ready(1, now=10)
    assert nodes.reasons() == {}
    nodes.disconnected(1, "reset", now=10)
    assert nodes.can_connect(1, now=10.05)


def test_a_throttled_broker_is_left_alone_for_a_while() -> None:
    nodes = states()
    nodes.ready(1)
    nodes.throttle(1, until=5)
    assert not nodes.is_ready(1, now=4.9)
    assert nodes.delay(1, now=4) == 1
    assert nodes.is_ready(1, now=5)


def test_reasons_stay_until_the_broker_is_reached() -> None:
    nodes = states()
    nodes.connecting(1, now=0)
    nodes.disconnected(1, "refused", now=0)
    nodes.connecting(1, now=1)
    assert nodes.reasons() == {1: "refused"}


def test_connections_nobody_uses_are_found() -> None:
    nodes = states()
    nodes.connecting(1, now=0)
    nodes.ready(1)
    assert nodes.idle(now=9, span=10) == []
    assert nodes.idle(now=10, span=10) == [1]
    nodes.closed(1)
    assert nodes.state(1) is ConnectionState.DISCONNECTED
    assert nodes.can_connect(1, now=10)
