"""Failed connections in the log of a client."""

from __future__ import annotations

import logging

import pytest

from ottla.client.network.connection_failures import SAME_FAILURE_SECONDS, FailureLog
from ottla.client.network.connection_states import ConnectionState, NodeConnectionState


@pytest.fixture
def warnings(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.WARNING, "ottla.client.network.connection_failures")
    return caplog


def test_a_failure_that_two_clients_of_a_consumer_meet_is_logged_once(warnings: pytest.LogCaptureFixture) -> None:
    failures = FailureLog("me")
    for _ in range(2):
        failures.log_failure("a:1", NodeConnectionState(), "no", 5.0)
    assert warnings.messages == ["[me] cannot reach a:1: no"]


def test_a_connection_that_fails_repeatedly_is_logged_again_later(warnings: pytest.LogCaptureFixture) -> None:
    failures = FailureLog("me")
    for n in range(21):
        failures.log_failure("a:1", NodeConnectionState(ConnectionState.READY), "no", n * SAME_FAILURE_SECONDS / 10)
    assert warnings.messages == ["[me] lost a:1: no"] * 3


def test_another_reason_or_another_broker_is_logged_at_once(
    warnings: pytest.LogCaptureFixture,
) -> None:
    failures = FailureLog("me")
    failures.log_failure("a:1", NodeConnectionState(reason="no"), "no", 0.0)
    failures.log_failure("a:1", NodeConnectionState(reason="no"), "not yet", 1.0)
    failures.log_failure("b:1", NodeConnectionState(), "not yet", 1.0)
    assert warnings.messages == ["[me] cannot reach a:1: not yet", "[me] cannot reach b:1: not yet"]
