"""What a request leaves behind is gone with its answer: a collector that had to find it would stop everybody."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from ottla.broker.embedded import Broker
from ottla.broker.fetching.fetch_session import FINAL_EPOCH, INITIAL_EPOCH
from ottla.broker.requests.call import Call
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
    """Those that there are, of one kind; the loop still holds what it did last."""
    found = [each for each in gc.get_objects() if isinstance(each, Call)]
    return [each for each in found if api is None or each.header.api_key == api.KEY]


@pytest.mark.parametrize("epoch", [FINAL_EPOCH, INITIAL_EPOCH], ids=["the short way", "the ordinary way"])
def test_a_fetch_that_waited_is_gone_with_its_answer(
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


def test_a_member_that_waited_for_others_is_gone_with_its_answer(
    wire: Wire, broker: Broker, calls_left: set[int]
) -> None:
    wire.create("t")
    member = Membership(broker.bootstrap_servers)
    try:
        for _ in range(3):
            member.join()
        wire.metadata()
        assert [each.header for each in calls(JoinGroupRequest) if id(each) not in calls_left] == []
    finally:
        member.wire.__exit__(None, None, None)
