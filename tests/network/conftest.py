"""Selectors on loopback, on either poller, driven until something is true."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Hashable, Iterator
from typing import Any

import pytest

from ottla.network import Listener, Selector
from ottla.network.poller import Poller, SelectorsPoller

POLLERS: dict[str, Callable[[], Poller]] = {"selectors": SelectorsPoller}
if sys.platform == "linux":
    from ottla.network.poller import EpollPoller

    POLLERS["epoll"] = EpollPoller
PATIENCE = 60.0


class Party:
    """A selector and everything it has reported."""

    def __init__(self, selector: Selector) -> None:
        self.selector = selector
        self.connected: list[Hashable] = []
        self.accepted: list[int] = []
        self.frames: list[memoryview] = []
        self.senders: list[Hashable] = []
        self.sent: list[Hashable] = []
        self.gone: dict[Hashable, str] = {}

    def poll(self, timeout: float) -> None:
        s = self.selector
        s.poll(timeout)
        self.connected += s.connected
        self.accepted += s.accepted
        self.frames += [frame for _, frame in s.completed_receives]
        self.senders += [sender for sender, _ in s.completed_receives]
        self.sent += s.completed_sends
        self.gone.update(s.disconnected)


def until(condition: Callable[[], Any], *parties: Party) -> None:
    """Drive `parties` in turn until `condition` holds."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        for party in parties:
            party.poll(0.002)


class Stage:
    """Create parties, and close them at the end of the test."""

    def __init__(self, poller: Callable[[], Poller]) -> None:
        self.poller = poller
        self.parties: list[Party] = []

    def party(self, **settings: Any) -> Party:
        party = Party(Selector(poller=self.poller(), **settings))
        self.parties.append(party)
        return party

    def server(self, **settings: Any) -> tuple[Party, Listener]:
        party = self.party(**settings)
        return party, party.selector.listen("127.0.0.1", 0)

    def pair(self, **settings: Any) -> tuple[Party, int, Party]:
        """Return a server, the id of its channel, and a client with the channel "up"."""
        server, listener = self.server(**settings)
        client = self.party()
        client.selector.connect("up", *listener.address)
        until(lambda: server.accepted and client.connected, server, client)
        return server, server.accepted[0], client


@pytest.fixture(params=sorted(POLLERS))
def stage(request: pytest.FixtureRequest) -> Iterator[Stage]:
    stage = Stage(POLLERS[request.param])
    yield stage
    for party in stage.parties:
        party.selector.close_all()
