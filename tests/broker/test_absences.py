"""Whether a broker's process has ended, by its port."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest

from ottla.broker.controllers.absences import PAUSES_SECONDS, Absences, Incarnation, is_gone
from ottla.free_ports import free_port
from tests.patience import eventually


@pytest.fixture
def listening() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


def test_who_listens_is_there_and_is_asked_more_than_once(listening: socket.socket) -> None:
    pauses: list[float] = []
    host, port = listening.getsockname()
    assert not is_gone(host, port, pauses.append)
    assert pauses == list(PAUSES_SECONDS)


def test_whose_port_closes_a_little_later_is_gone(listening: socket.socket) -> None:
    (host, port), pauses = listening.getsockname(), []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 3:
            listening.close()

    assert is_gone(host, port, pause)
    assert len(pauses) == 3


def test_of_whom_nothing_is_heard_the_session_decides() -> None:
    assert not is_gone("host.invalid", 9092, pause=lambda seconds: None)


def test_each_is_looked_for_once_at_a_time_and_told_if_gone(listening: socket.socket) -> None:
    told: list[Incarnation] = []
    absences = Absences(told.append)
    absences.suspect((1, 5), *listening.getsockname())
    for _ in range(3):
        absences.suspect((2, 6), "127.0.0.1", free_port())
    eventually(lambda: told == [(2, 6)] or len(told) > 3)
    eventually(lambda: not any(each.name == "ottla-absences" for each in threading.enumerate()))
    assert set(told) == {(2, 6)}
