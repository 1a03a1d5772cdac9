"""New connections: many at once, without free descriptors, and ports that cannot be bound."""

from __future__ import annotations

import logging
import resource
import socket
import time

import pytest

from ottla.network.listener import ConnectionLimit
from tests.network.conftest import PATIENCE, Stage, until

STANDARD = 3
"""The standard descriptors stay open: a limit of this number leaves none free, even if others are closed meanwhile."""


def test_a_storm_of_connections_is_accepted_over_several_polls(stage: Stage) -> None:
    server, listener = stage.server()
    socks = [socket.create_connection(listener.address, PATIENCE) for _ in range(300)]
    server.poll(1)
    assert 0 < len(server.accepted) < 300
    until(lambda: len(server.accepted) == 300, server)
    assert len(set(server.accepted)) == 300
    for sock in socks:
        sock.close()
    until(lambda: len(server.gone) == 300, server)


def test_without_descriptors_connections_wait_and_it_is_logged_once(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    server, listener = stage.server()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with socket.create_connection(listener.address, PATIENCE):
        resource.setrlimit(resource.RLIMIT_NOFILE, (STANDARD, hard))
        try:
            with caplog.at_level(logging.WARNING):
                start, polls = time.monotonic(), 0
                while time.monotonic() - start < 0.35:
                    server.poll(0.5)
                    polls += 1
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        assert not server.accepted
        assert polls < 20, "the loop must not spin"
        assert caplog.text.count("accepts no connections for now: Too many open files") == 1
        until(lambda: server.accepted, server)


def test_a_port_in_use_raises_an_error_that_states_it(stage: Stage) -> None:
    _, listener = stage.server()
    host, port = listener.address
    with pytest.raises(OSError, match=rf"cannot listen on {host}:{port}: the port is taken"):
        stage.party().selector.listen(host, port)


@pytest.mark.parametrize(("host", "words"), [("192.0.2.1", "no such address"), ("a..b", "cannot listen on a..b:0")])
def test_an_address_of_another_machine_raises_an_error_that_states_it(stage: Stage, host: str, words: str) -> None:
    with pytest.raises(OSError, match=words):
        stage.party().selector.listen(host, 0)


def test_a_closed_listener_refuses_connections_and_keeps_its_channels(stage: Stage) -> None:
    server, listener = stage.server()
    client = stage.party()
    client.selector.connect("up", *listener.address)
    until(lambda: server.accepted and client.connected, server, client)
    server.selector.close_listener(listener)
    client.selector.connect("late", *listener.address)
    client.selector.send("up", [b"x"])
    until(lambda: client.gone and server.frames, server, client)
    assert client.gone == {"late": "connection refused"}


def test_a_bound_port_refuses_connections_until_it_is_opened(stage: Stage) -> None:
    server, client = stage.party(), stage.party()
    listener = server.selector.bind("127.0.0.1", 0)
    client.selector.connect("early", *listener.address)
    until(lambda: client.gone, server, client)
    assert client.gone == {"early": "connection refused"}
    server.selector.open_listener(listener)
    client.selector.connect("late", *listener.address)
    until(lambda: server.accepted and client.connected, server, client)


def test_a_bound_port_is_closed_like_an_open_one(stage: Stage) -> None:
    server = stage.party()
    listener = server.selector.bind("127.0.0.1", 0)
    server.selector.close_listener(listener)
    stage.party().selector.listen(*listener.address)


def test_of_two_sockets_bound_to_one_port_the_second_to_open_gets_an_error(stage: Stage) -> None:
    first, second = stage.party().selector, stage.party().selector
    one = first.bind("127.0.0.1", 0)
    other = second.bind(*one.address)
    first.open_listener(one)
    host, port = one.address
    with pytest.raises(OSError, match=rf"cannot listen on {host}:{port}: the port is taken"):
        second.open_listener(other)


def test_a_port_is_opened_while_the_selector_accepts_nothing_and_accepts_once_allowed(stage: Stage) -> None:
    server, client = stage.party(max_accepted=0), stage.party()
    listener = server.selector.bind("127.0.0.1", 0)
    server.poll(0)
    server.selector.open_listener(listener)
    client.selector.connect("up", *listener.address)
    until(lambda: client.connected, server, client)
    assert not server.accepted
    server.selector.set_max_accepted(1)
    until(lambda: server.accepted, server, client)


def test_a_listener_with_a_limit_of_its_own_accepts_while_others_are_full(stage: Stage) -> None:
    server, client = stage.party(max_accepted=0), stage.party()
    listener = server.selector.bind("127.0.0.1", 0, limit=ConnectionLimit(1))
    server.selector.open_listener(listener)
    client.selector.connect("first", *listener.address)
    until(lambda: server.accepted, server, client)
    client.selector.connect("second", *listener.address)
    until(lambda: "second" in client.connected, server, client)
    assert len(server.accepted) == 1, "the second one waits in the kernel's queue"
    server.selector.close(server.accepted[0])
    until(lambda: len(server.accepted) == 2, server, client)
