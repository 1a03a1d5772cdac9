"""The liveness probe of a broker process by its port."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest

from ottla.broker.controller.liveness_probe import PAUSES_SECONDS, Incarnation, LivenessProbes, refuses_connections
from tests.patience import eventually


@pytest.fixture
def listening() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


def test_a_listening_process_is_alive_after_several_probes(listening: socket.socket) -> None:
    pauses: list[float] = []
    host, port = listening.getsockname()
    assert not refuses_connections(host, port, pauses.append)
    assert pauses == list(PAUSES_SECONDS)


def test_a_port_that_closes_a_little_later_is_found_closed(listening: socket.socket) -> None:
    (host, port), pauses = listening.getsockname(), []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 3:
            listening.close()

    assert refuses_connections(host, port, pause)
    assert len(pauses) == 3


def test_an_unreachable_host_is_left_to_its_session() -> None:
    assert not refuses_connections("host.invalid", 9092, pause=lambda seconds: None)


def test_each_broker_is_probed_once_at_a_time_and_reported_if_it_is_gone() -> None:
    reported: list[Incarnation] = []
    looks: list[int] = []
    may_end = threading.Event()

    def is_gone(host: str, port: int) -> bool:
        looks.append(port)
        may_end.wait()
        return port == 2

    absences = LivenessProbes(reported.append, is_gone)
    absences.start_probe((1, 5), "127.0.0.1", 1)
    for _ in range(3):
        absences.start_probe((2, 6), "127.0.0.1", 2)
    may_end.set()
    eventually(lambda: not any(each.name == "ottla-absences" for each in threading.enumerate()))
    assert sorted(looks) == [1, 2]
    assert reported == [(2, 6)]
    absences.start_probe((2, 6), "127.0.0.1", 2)
    eventually(lambda: reported == [(2, 6), (2, 6)])
