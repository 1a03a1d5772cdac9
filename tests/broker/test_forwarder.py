"""What a broker hands on to the controllers goes on after one request went wrong."""

from __future__ import annotations

import logging
from queue import SimpleQueue
from typing import Any, cast

import pytest

from ottla.broker.controllers.forwarder import Errand, Forwarder
from ottla.broker.peers.peer_connection import PeerConnection
from ottla.clock import SystemClock
from ottla.coordination.quorum.observer import Address
from ottla.protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse


class Answers:
    """Stands for the conversation with the controller: fails in a way that nobody foresaw, then answers."""

    def __init__(self) -> None:
        self.asked = 0

    def ask(self, *_: object) -> AllocateProducerIdsResponse:
        self.asked += 1
        if self.asked == 1:
            raise IndexError("nobody thought of this")
        return AllocateProducerIdsResponse(producer_id_start=7)

    def give_up(self) -> None:
        pass

    def close(self) -> None:
        pass


def test_a_request_that_fails_in_an_unforeseen_way_has_no_answer_and_the_next_one_has(
    caplog: pytest.LogCaptureFixture,
) -> None:
    told: SimpleQueue[Any] = SimpleQueue()
    connection = cast(PeerConnection, Answers())
    forwarder = Forwarder(lambda: Address("h", 1), connection, lambda call: call(), SystemClock())
    errand = Errand(AllocateProducerIdsRequest(1, 1), 0, AllocateProducerIdsResponse, told.put)
    with caplog.at_level(logging.WARNING):
        forwarder.ask(errand)
        forwarder.ask(errand)
        assert told.get(timeout=60) is None
        assert told.get(timeout=60).producer_id_start == 7
    forwarder.close()
    assert "nobody thought of this" in caplog.text
