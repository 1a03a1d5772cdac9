"""One request in flight per node, and the choice of the next node."""

from __future__ import annotations

from ottla.coordination.quorum.config import QuorumConfig
from ottla.coordination.quorum.request_tracker import RequestTracker

CONFIG = QuorumConfig(request_timeout_ms=2000, retry_backoff_ms=20)


def test_a_node_has_one_request_in_flight() -> None:
    peers = RequestTracker(CONFIG)
    number = peers.start_request(2, 1.0)
    assert (peers.is_ready(2, 2.9), peers.is_ready(3, 1.0), peers.is_waiting) == (False, True, True)
    assert peers.finish_request(2, number)
    assert (peers.is_ready(2, 1.1), peers.is_waiting) == (True, False)


def test_a_response_to_another_request_is_ignored() -> None:
    peers = RequestTracker(CONFIG)
    old = peers.start_request(2, 1.0)
    number = peers.start_request(2, 4.0)
    assert not peers.finish_request(2, old)
    assert not peers.finish_request(3, number)
    assert peers.finish_request(2, number)
    assert not peers.finish_request(2, number)


def test_a_node_that_timed_out_is_skipped_for_a_moment() -> None:
    peers = RequestTracker(CONFIG)
    peers.start_request(2, 1.0)
    assert peers.wake_at(1.0) == 3.0
    assert peers.expire(2.9) == []
    assert peers.expire(3.0) == [2]
    assert (peers.is_waiting, peers.is_ready(2, 3.01), peers.wake_at(3.0)) == (False, False, 3.02)
    assert peers.is_ready(2, 3.02)
    assert peers.wake_at(3.02) == float("inf")


def test_after_a_reset_every_node_is_available() -> None:
    peers = RequestTracker(CONFIG)
    peers.start_request(2, 1.0)
    peers.back_off(3, 1.0)
    peers.reset()
    assert peers.is_ready(2, 1.0)
    assert peers.is_ready(3, 1.0)
