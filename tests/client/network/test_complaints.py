"""What a client's log says of its connections, and how often."""

from __future__ import annotations

import logging

import pytest

from ottla.client.network.complaints import AT_ONCE_SECONDS, Complaints
from ottla.client.network.connection_states import ConnectionState, NodeConnectionState


@pytest.fixture
def warnings(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.WARNING, "ottla.client.network.complaints")
    return caplog


def test_what_two_clients_of_a_consumer_meet_with_at_once_is_told_once(warnings: pytest.LogCaptureFixture) -> None:
    ours = Complaints("me")
    for _ in range(2):
        ours.tell("a:1", NodeConnectionState(), "no", 5.0)
    assert warnings.messages == ["[me] cannot reach a:1: no"]


def test_a_connection_that_is_lost_again_and_again_is_told_of_again_later(warnings: pytest.LogCaptureFixture) -> None:
    ours = Complaints("me")
    for n in range(21):
        ours.tell("a:1", NodeConnectionState(ConnectionState.READY), "no", n * AT_ONCE_SECONDS / 10)
    assert warnings.messages == ["[me] lost a:1: no"] * 3


def test_what_was_told_of_this_connection_or_of_another_broker_is_told_as_it_was(
    warnings: pytest.LogCaptureFixture,
) -> None:
    ours = Complaints("me")
    ours.tell("a:1", NodeConnectionState(reason="no"), "no", 0.0)
    ours.tell("a:1", NodeConnectionState(reason="no"), "not yet", 1.0)
    ours.tell("b:1", NodeConnectionState(), "not yet", 1.0)
    assert warnings.messages == ["[me] cannot reach a:1: not yet", "[me] cannot reach b:1: not yet"]
