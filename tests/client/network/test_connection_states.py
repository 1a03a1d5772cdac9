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
        nodes.start_connecting(1, now=attempt)
        nodes.record_disconnect(1, "refused", now=attempt)
        assert not nodes.can_connect(1, now=attempt + pause - 0.01)
        assert nodes.can_connect(1, now=attempt + pause)


def test_setting_up_may_take_longer_after_each_failure() -> None:
    nodes = states()
    spans = []
    for _ in range(4):
        spans.append(nodes.start_connecting(1, now=0))
        nodes.record_disconnect(1, "timed out", now=0)
    assert spans == [10, 20, 30, 30]


def test_a_ready_connection_forgets_the_failures() -> None:
    nodes = states()
    for _ in range(5):
        nodes.start_connecting(1, now=0)
        nodes.record_disconnect(1, "refused", now=0)
    nodes.start_connecting(1, now=10)
    nodes.start_api_versions_check(1)
    assert not nodes.is_ready(1, now=10)
    nodes.mark_ready(1)
    assert nodes.is_ready(1, now=10)
    assert nodes.failure_reasons() == {}
    nodes.record_disconnect(1, "reset", now=10)
    assert nodes.can_connect(1, now=10.05)


def test_a_throttled_broker_gets_no_request_during_the_throttle_time() -> None:
    nodes = states()
    nodes.mark_ready(1)
    nodes.throttle(1, until=5)
    assert not nodes.is_ready(1, now=4.9)
    assert nodes.connection_delay(1, now=4) == 1
    assert nodes.is_ready(1, now=5)


def test_reasons_stay_until_the_broker_is_reached() -> None:
    nodes = states()
    nodes.start_connecting(1, now=0)
    nodes.record_disconnect(1, "refused", now=0)
    nodes.start_connecting(1, now=1)
    assert nodes.failure_reasons() == {1: "refused"}


def test_idle_connections_are_found() -> None:
    nodes = states()
    nodes.start_connecting(1, now=0)
    nodes.mark_ready(1)
    assert nodes.find_idle(now=9, span=10) == []
    assert nodes.find_idle(now=10, span=10) == [1]
    nodes.record_close(1)
    assert nodes.state(1) is ConnectionState.DISCONNECTED
    assert nodes.can_connect(1, now=10)
