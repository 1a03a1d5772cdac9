"""Requests of a broker to the active controller: in the same process, or elsewhere."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, cast

import pytest

from ottla.broker.event_loop.timers import Timers
from ottla.broker.network_server.call import Call
from ottla.broker.peers.peer_connection import PeerConnection, Question
from ottla.broker.peers.peer_errors import PeerLost, PeerRefused
from ottla.broker.registration.controller_channel import (
    ANSWER_SECONDS,
    RETRY_SECONDS,
    ChannelRequest,
    ControllerChannel,
)
from ottla.clock import ManualClock
from ottla.coordination.quorum.observer import Address
from ottla.errors import ErrorCode
from ottla.protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from ottla.protocol.schema import Message


class FakeConnection:
    """A connection on which the test answers."""

    def __init__(self) -> None:
        self.questions: list[Question] = []
        self.closed = 0

    def send_request(self, question: Question) -> None:
        self.questions.append(question)

    def close(self) -> None:
        self.closed += 1


class FakeController:
    """A controller in the same process, on which the test decides."""

    def __init__(self) -> None:
        self.is_active = False
        self.submitted: list[tuple[Message, Callable[[Message | None], None]]] = []

    def submit(self, call: Call | None, request: Message, version: int, done: Callable[[Message | None], None]) -> None:
        self.submitted.append((request, done))


class Story:
    """A channel, turned by hand."""

    def __init__(self, *, combined: bool = False) -> None:
        self.clock, self.timers, self.connection = ManualClock(), Timers(), FakeConnection()
        self.local = FakeController() if combined else None
        self.leader: Address | None = Address("h", 1)
        self.heard: list[int | None] = []
        way = cast(PeerConnection, self.connection)
        self.channel = ControllerChannel(lambda: self.leader, lambda: way, self.local, self.timers, self.clock)

    def ask(self, done: Callable[[Any], None] | None = None) -> None:
        request = AllocateProducerIdsRequest(1, 1)
        self.channel.send_request(ChannelRequest(request, 0, AllocateProducerIdsResponse, done or self.hear))

    def hear(self, response: AllocateProducerIdsResponse | None) -> None:
        self.heard.append(None if response is None else response.producer_id_start)

    def answer(self, said: Any) -> None:
        self.connection.questions.pop(0).done(said)

    def wait(self, seconds: float) -> None:
        self.clock.advance(seconds)
        self.timers.run(self.clock.monotonic())


def granted(start: int, code: int = ErrorCode.NONE) -> AllocateProducerIdsResponse:
    return AllocateProducerIdsResponse(error_code=code, producer_id_start=start)


def test_requests_are_sent_one_after_another() -> None:
    story = Story()
    story.ask()
    story.ask()
    assert len(story.connection.questions) == 1
    story.answer(granted(1))
    story.answer(granted(2))
    assert story.heard == [1, 2]


@pytest.mark.parametrize("said", [PeerLost("gone"), granted(0, ErrorCode.NOT_CONTROLLER)])
def test_a_request_without_a_response_is_sent_to_the_next_controller(said: Any) -> None:
    story = Story()
    story.ask()
    story.answer(said)
    story.leader = Address("other", 2)
    story.wait(RETRY_SECONDS)
    assert story.connection.questions[0].address == Address("other", 2)
    story.answer(granted(7))
    assert story.heard == [7]


def test_a_request_waits_for_a_controller_until_its_timeout(caplog: pytest.LogCaptureFixture) -> None:
    story = Story()
    story.leader = None
    story.ask()
    for _ in range(int(ANSWER_SECONDS / RETRY_SECONDS) + 2):
        story.wait(RETRY_SECONDS)
    assert story.heard == [None]
    assert "no controller answers: no controller is known" in caplog.text


def test_a_request_to_a_silent_controller_times_out_and_the_next_one_is_sent() -> None:
    story = Story()
    story.ask()
    story.ask()
    story.wait(ANSWER_SECONDS)
    assert (story.heard, story.connection.closed, len(story.connection.questions)) == ([None], 1, 2)


def test_a_rejected_login_fails_the_request_at_once(caplog: pytest.LogCaptureFixture) -> None:
    story = Story()
    story.ask()
    story.answer(PeerRefused("wrong password"))
    assert story.heard == [None]
    assert "the controller at h:1 does not let this broker in: wrong password" in caplog.text


def test_a_response_that_cannot_be_applied_does_not_block_the_next_request(caplog: pytest.LogCaptureFixture) -> None:
    def fail(response: object) -> None:
        raise IndexError("nothing foresaw this")

    story = Story()
    with caplog.at_level(logging.WARNING):
        story.ask(fail)
        story.ask()
        story.answer(granted(1))
        story.answer(granted(2))
    assert story.heard == [2]
    assert "nothing foresaw this" in caplog.text


def test_the_active_controller_in_this_process_is_called_directly() -> None:
    story = Story(combined=True)
    assert story.local is not None
    story.local.is_active = True
    story.ask()
    story.ask()
    assert not story.connection.questions
    for number, (_, done) in enumerate(story.local.submitted):
        done(granted(number))
    assert story.heard == [0, 1]


def test_a_request_is_sent_to_another_controller_after_the_local_one_resigned() -> None:
    story = Story(combined=True)
    assert story.local is not None
    story.local.is_active = True
    story.ask()
    story.local.is_active = False
    story.local.submitted[0][1](None)
    story.answer(granted(5))
    assert story.heard == [5]


def test_a_waiting_request_is_decided_locally_once_this_controller_is_active() -> None:
    story = Story(combined=True)
    assert story.local is not None
    story.leader = None
    story.ask()
    story.local.is_active = True
    story.wait(RETRY_SECONDS)
    story.local.submitted[0][1](granted(3))
    assert story.heard == [3]


def test_no_response_is_delivered_after_close() -> None:
    story = Story(combined=True)
    assert story.local is not None
    story.local.is_active = True
    story.ask()
    story.channel.close()
    story.local.submitted[0][1](granted(3))
    assert not story.heard
