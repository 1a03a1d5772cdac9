"""Free ports for servers that need a fixed port: no process uses them, and no other caller receives them soon."""

from __future__ import annotations

import socket
from unittest.mock import patch

import pytest

from ottla import free_ports as ports
from ottla.free_ports import HeldPorts, free_port, free_ports


def test_each_port_is_returned_once_and_is_below_the_ephemeral_range() -> None:
    found = free_ports(200)
    assert len(set(found)) == 200
    assert max(found) < ports.first_ephemeral()


def test_a_port_in_use_is_not_returned(monkeypatch: pytest.MonkeyPatch) -> None:
    taken, free = free_ports(2)
    monkeypatch.setattr(ports, "_given", set())
    with socket.create_server(("127.0.0.1", taken)), patch.object(ports, "_chance") as chance:
        chance.randrange.side_effect = [taken, free]
        assert free_port() == free


def test_a_held_port_is_not_returned_but_can_be_bound_by_number(monkeypatch: pytest.MonkeyPatch) -> None:
    (free,) = free_ports(1)
    with HeldPorts() as held:
        taken = held.claim_port("127.0.0.1")
        monkeypatch.setattr(ports, "_given", set())
        with patch.object(ports, "_chance") as chance:
            chance.randrange.side_effect = [taken, free]
            assert free_port() == free
        for _ in range(2):
            with (
                socket.create_server(("127.0.0.1", taken)) as server,
                socket.create_connection(("127.0.0.1", taken)) as client,
            ):
                server.accept()[0].close()
                assert client.recv(1) == b""


def test_a_port_can_be_held_after_its_server_has_stopped_but_not_while_it_serves() -> None:
    with HeldPorts() as held:
        place = "127.0.0.1", held.claim_port("127.0.0.1")
        with socket.create_server(place) as server, socket.create_connection(place) as client:
            server.accept()[0].close()
            assert client.recv(1) == b""
            with pytest.raises(OSError, match="in use"):
                ports.hold_port(*place, alone=False)
            held.hold_given_port(*place)  # the server that has the port reports it
        ports.hold_port(*place, alone=False).close()


@pytest.mark.parametrize(("text", "first"), [("32768\t60999\n", 32768), ("1024\t65535\n", 32768)])
def test_an_ephemeral_range_of_nearly_all_ports_leaves_none_below(
    text: str, first: int, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    range_of = tmp_path_factory.mktemp("proc") / "range"
    range_of.write_text(text)
    monkeypatch.setattr(ports, "RANGE", range_of)
    assert ports.first_ephemeral() == first
