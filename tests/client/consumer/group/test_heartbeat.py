from __future__ import annotations

import math

import pytest

from ottla.client.consumer.group.heartbeat import Heartbeat


def heartbeat() -> Heartbeat:
    return Heartbeat(interval_ms=3000, session_timeout_ms=45_000, max_poll_interval_ms=300_000)


@pytest.mark.behaviour("C7")
def test_a_heartbeat_is_due_an_interval_after_the_last() -> None:
    beat = heartbeat()
    assert beat.time_to_next(0) == math.inf, "there is no session yet"
    beat.start(10.0)
    assert (beat.time_to_next(10.0), beat.time_to_next(12.0), beat.time_to_next(99.0)) == (3.0, 1.0, 0.0)
    beat.record_sent(13.0)
    assert beat.time_to_next(14.0) == 2.0


def test_a_failed_heartbeat_is_retried_sooner() -> None:
    beat = heartbeat()
    beat.start(0)
    beat.send_by(0.1)
    assert beat.time_to_next(0) == pytest.approx(0.1)
    beat.send_by(9.0)
    assert beat.time_to_next(0) == pytest.approx(0.1)


def test_a_session_is_over_when_the_coordinator_is_silent_for_its_span() -> None:
    beat = heartbeat()
    beat.start(0)
    assert not beat.is_session_expired(45.0)
    assert beat.is_session_expired(45.1)
    beat.record_received(45.0)
    assert not beat.is_session_expired(90.0)


@pytest.mark.behaviour("C9")
def test_the_max_poll_interval_restarts_at_each_poll() -> None:
    beat = heartbeat()
    beat.poll(0)
    assert not beat.is_poll_expired(300.0)
    assert beat.is_poll_expired(300.1)
    beat.poll(250.0)
    assert beat.time_to_poll_expiry(300.0) == 250.0
