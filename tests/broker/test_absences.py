"""Whether a broker's process has ended, by its port."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest

from ottla.broker.controllers.absences import PAUSES_SECONDS, Absences, Incarnation, refuses
from tests.patience import eventually


@pytest.fixture
def listening() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


def test_who_listens_is_there_and_is_asked_more_than_once(listening: socket.socket) -> None:
    pauses: list[float] = []
    host, port = listening.getsockname()
    assert not refuses(host, port, pauses.append)
    assert pauses == list(PAUSES_SECONDS)


def test_whose_port_closes_a_little_later_refuses(listening: socket.socket) -> None:
    (host, port), pauses = listening.getsockname(), []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 3:
            listening.close()

    assert refuses(host, port, pause)
    assert len(pauses) == 3


def test_of_whom_nothing_is_heard_the_session_decides() -> None:
    assert not refuses("host.invalid", 9092, pause=lambda seconds: None)


def test_each_is_looked_for_once_at_a_time_and_told_if_gone() -> None:
    told: list[Incarnation] = []
    looks: list[int] = []
    may_end = threading.Event()

    def is_gone(host: str, port: int) -> bool:
        looks.append(port)
        may_end.wait()
        return port == 2

    absences = Absences(told.append, is_gone)
    absences.suspect((1, 5), "127.0.0.1", 1)
    for _ in range(3):
        absences.suspect((2, 6), "127.0.0.1", 2)
    may_end.set()
    eventually(lambda: not any(each.name == "ottla-absences" for each in threading.enumerate()))
    assert sorted(looks) == [1, 2]
    assert told == [(2, 6)]
    absences.suspect((2, 6), "127.0.0.1", 2)
    eventually(lambda: told == [(2, 6), (2, 6)])
