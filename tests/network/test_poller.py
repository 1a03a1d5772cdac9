"""The results of a poller after a wait."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

import pytest

from ottla.network.poller import READ, SelectorsPoller, default_poller
from tests.network.conftest import POLLERS


class Stopped:
    """A wait below a poller in a process that is stopped meanwhile: input arrives and the timeout has passed."""

    def __init__(self, below: Any, come: Callable[[], object]) -> None:
        self._below, self._come = below, come

    def __getattr__(self, name: str) -> Any:
        return getattr(self._below, name)

    def poll(self, timeout: float) -> Any:
        """Wait with the interface of epoll."""
        return self._wait(self._below.poll)

    def select(self, timeout: float) -> Any:
        """Wait with the interface of Python's selectors."""
        return self._wait(self._below.select)

    def _wait(self, wait: Callable[[float], Any]) -> Any:
        ready = wait(0)
        self._come()
        return ready


@pytest.mark.parametrize("kind", list(POLLERS))
def test_input_that_arrived_while_the_process_was_stopped_is_found(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    poller: Any = POLLERS[kind]()
    below = "_epoll" if kind == "epoll" else "_selector"
    ours, theirs = socket.socketpair()
    with ours, theirs:
        poller.register(ours.fileno(), READ)
        monkeypatch.setattr(poller, below, Stopped(getattr(poller, below), lambda: theirs.send(b"x")))
        assert poller.poll(0.5) == [(ours.fileno(), READ)]
        poller.close()


def test_the_environment_selects_the_portable_poller(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTTLA_POLLER", "selectors")
    poller = default_poller()
    poller.close()
    assert isinstance(poller, SelectorsPoller)
