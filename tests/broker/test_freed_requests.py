"""Objects of a request are freed with its response: a garbage collection that had to find them would delay all clients."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from ottla.broker.embedding.embedded_broker import Broker
from ottla.broker.network_server.call import Call
from ottla.broker.replica_manager.fetch_session import FINAL_EPOCH, INITIAL_EPOCH
from ottla.protocol.messages.fetch import FetchRequest
from ottla.protocol.messages.join_group import JoinGroupRequest
from ottla.protocol.schema import Message
from tests.broker.membership import Membership
from tests.broker.wire import Wire, fetch


@pytest.fixture
def calls_left() -> Iterator[set[int]]:
    """The calls there were before; no collector runs meanwhile."""
    gc.collect()
    gc.disable()
    try:
        yield set(map(id, calls()))
    finally:
        gc.enable()


def calls(api: type[Message] | None = None) -> list[Call]:
    """Return the existing objects of a class; the event loop still references its last task."""
    found = [each for each in gc.get_objects() if isinstance(each, Call)]
    return [each for each in found if api is None or each.header.api_key == api.KEY]


@pytest.mark.parametrize("epoch", [FINAL_EPOCH, INITIAL_EPOCH], ids=["the short way", "the ordinary way"])
def test_a_waiting_fetch_is_freed_after_its_response(
    wire: Wire, broker: Broker, calls_left: set[int], epoch: int
) -> None:
    wire.create("t")
    with Wire(broker.bootstrap_servers) as other:
        for offset in range(3):
            request = fetch("t", offset, max_wait_ms=60_000)
            request.session_epoch = epoch
            other.send(request, 12)
            wire.metadata()  # by then the other request waits
            wire.produce("t", b"a")
            other.receive_frame()
        wire.metadata()  # by then the broker has done with the answer
    assert [each.header for each in calls(FetchRequest) if id(each) not in calls_left] == []


def test_a_waiting_member_is_freed_after_its_response(wire: Wire, broker: Broker, calls_left: set[int]) -> None:
    wire.create("t")
    member = Membership(broker.bootstrap_servers)
    try:
        for _ in range(3):
            member.join()
        wire.metadata()
        assert [each.header for each in calls(JoinGroupRequest) if id(each) not in calls_left] == []
    finally:
        member.wire.__exit__(None, None, None)
