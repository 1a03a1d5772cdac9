"""A broker's registration and heartbeats, in the loop: which controller gets them, and what follows without an answer."""

from __future__ import annotations

import uuid
from typing import Any, cast

import pytest

from ottla.broker.event_loop.timers import Timers
from ottla.broker.metadata.node_errors import RegistrationLostError
from ottla.broker.peers.peer_connection import PeerConnection
from ottla.broker.peers.peer_errors import PeerLost
from ottla.broker.registration.lifecycle_driver import LOOK_SECONDS, LifecycleDriver
from ottla.clock import ManualClock
from ottla.coordination.cluster.features import BROKER_LEVELS
from ottla.coordination.lifecycle.broker_lifecycle import BrokerLifecycle, Incarnation, LifecycleTimeouts
from ottla.coordination.lifecycle.events import ControllerElected, MetadataApplied, Recovered, ShutdownRequested
from ottla.coordination.quorum.observer import Address
from ottla.errors import ErrorCode, OttlaError
from ottla.protocol.messages.api_versions import ApiVersionsResponse, FinalizedFeatureKey
from ottla.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from ottla.protocol.messages.broker_registration import BrokerRegistrationRequest, BrokerRegistrationResponse
from tests.broker.test_controller_channel import FakeConnection, FakeController

HERE, THERE = Address("here", 1), Address("there", 2)
HEARTBEAT_SECONDS = 2.0
WHO = Incarnation(1, "cluster", uuid.UUID(int=1), (), (uuid.UUID(int=2),), (), None, -1)


class Story:
    """A driver, turned by hand; it is its own host."""

    def __init__(self, *, combined: bool = False) -> None:
        self.clock, self.timers, self.connection = ManualClock(), Timers(), FakeConnection()
        self.local = FakeController() if combined else None
        self.leader: Address | None = HERE
        self.happened: list[Any] = []
        lifecycle = BrokerLifecycle(WHO, LifecycleTimeouts(HEARTBEAT_SECONDS, 60.0, 30.0), 0.0)
        way = cast(PeerConnection, self.connection)
        around = self, self.timers, self.clock, dict
        self.driver = LifecycleDriver(lifecycle, lambda: self.leader, lambda: way, self.local, *around)
        self.driver.start()
        self.wait(0)

    def recover(self) -> None:
        self.happened.append("recover")

    def serve(self) -> None:
        self.happened.append("serve")

    def end(self, error: OttlaError | None) -> None:
        self.happened.append(error)

    def wait(self, seconds: float) -> None:
        self.clock.advance(seconds)
        self.timers.run(self.clock.monotonic())

    def answer(self, said: Any) -> None:
        self.connection.questions.pop(0).done(said)
        self.wait(0)

    @property
    def asked(self) -> list[type]:
        return [type(each.request) for each in self.connection.questions]

    def register(self) -> None:
        self.answer(found())
        self.answer(BrokerRegistrationResponse(broker_epoch=5))

    def run(self) -> None:
        """Register, catch up and be unfenced."""
        self.register()
        self.driver.handle_event(MetadataApplied(5))
        self.answer(BrokerHeartbeatResponse(is_caught_up=True))
        self.driver.handle_event(Recovered())
        self.answer(BrokerHeartbeatResponse(is_caught_up=True, is_fenced=False))


def found() -> ApiVersionsResponse:
    levels = [FinalizedFeatureKey(name, level.last, level.last) for name, level in BROKER_LEVELS.items()]
    return ApiVersionsResponse(finalized_features=levels)


def test_a_broker_finds_the_controller_registers_recovers_and_serves() -> None:
    story = Story()
    story.run()
    assert story.happened == ["recover", "serve"]
    story.wait(HEARTBEAT_SECONDS)
    assert story.asked == [BrokerHeartbeatRequest]


def test_a_registration_is_retried_until_a_controller_is_known() -> None:
    story = Story()
    story.leader = None
    story.answer(PeerLost("refused"))
    story.wait(LOOK_SECONDS)
    assert not story.asked
    story.leader = THERE
    story.wait(LOOK_SECONDS)
    assert [each.address for each in story.connection.questions] == [THERE]


def test_without_a_controller_a_broker_stops_after_the_registration_timeout() -> None:
    story = Story()
    story.leader = None
    story.answer(PeerLost("refused"))
    for _ in range(int(60 / LOOK_SECONDS) + 2):
        story.wait(LOOK_SECONDS)
    (error,) = story.happened
    assert "no controller has registered broker 1 within 60 s" in str(error)


@pytest.mark.parametrize("said", [PeerLost("gone"), BrokerHeartbeatResponse(error_code=ErrorCode.NOT_CONTROLLER)])
def test_a_heartbeat_without_a_response_is_repeated_to_the_current_controller(said: Any) -> None:
    story = Story()
    story.run()
    story.wait(HEARTBEAT_SECONDS)
    story.leader = THERE
    story.answer(said)
    story.wait(HEARTBEAT_SECONDS)
    assert [(each.address, type(each.request)) for each in story.connection.questions] == [
        (THERE, BrokerHeartbeatRequest)
    ]


def test_a_new_controller_gets_a_heartbeat_at_once_although_the_old_one_has_not_responded() -> None:
    story = Story()
    story.run()
    story.wait(HEARTBEAT_SECONDS)
    (unanswered,) = story.connection.questions
    story.leader = THERE
    story.driver.handle_event(ControllerElected())
    story.wait(0)
    assert [each.address for each in story.connection.questions] == [HERE, THERE]
    assert story.connection.closed == 1
    unanswered.done(BrokerHeartbeatResponse())
    assert [each.address for each in story.connection.questions] == [HERE, THERE], "a late answer changes nothing"


def test_the_active_controller_in_this_process_is_called_directly() -> None:
    story = Story(combined=True)
    assert story.local is not None
    story.answer(PeerLost("refused"))
    story.local.is_active = True
    story.wait(LOOK_SECONDS)
    story.wait(0)
    story.local.submitted.pop()[1](found())
    story.wait(0)
    request, done = story.local.submitted.pop()
    assert isinstance(request, BrokerRegistrationRequest)
    done(BrokerRegistrationResponse(broker_epoch=5))
    assert story.driver.lifecycle.epoch == 5
    assert not story.connection.questions


def test_an_unregistered_broker_stops_and_logs_it() -> None:
    story = Story()
    story.run()
    story.wait(HEARTBEAT_SECONDS)
    story.answer(BrokerHeartbeatResponse(error_code=ErrorCode.STALE_BROKER_EPOCH))
    assert isinstance(story.happened[-1], RegistrationLostError)
    story.wait(10 * HEARTBEAT_SECONDS)
    assert not story.asked


def test_a_controlled_shutdown_ends_when_the_controller_allows_it() -> None:
    story = Story()
    story.run()
    story.driver.handle_event(ShutdownRequested())
    story.wait(0)
    story.answer(BrokerHeartbeatResponse(is_caught_up=True, is_fenced=False, should_shut_down=True))
    assert story.happened == ["recover", "serve", None]


def test_nothing_is_sent_after_close() -> None:
    story = Story()
    story.run()
    story.driver.close()
    story.wait(10 * HEARTBEAT_SECONDS)
    assert not story.asked
