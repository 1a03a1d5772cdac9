"""Ports for servers that must be told theirs: of nobody, and of nobody soon."""

from __future__ import annotations

import socket
from unittest.mock import patch

import pytest

from ottla import free_ports as ports
from ottla.free_ports import HeldPorts, free_port, free_ports


def test_each_is_given_once_and_lies_beneath_those_that_the_kernel_gives() -> None:
    found = free_ports(200)
    assert len(set(found)) == 200
    assert max(found) < ports.first_ephemeral()


def test_one_that_somebody_has_is_not_given(monkeypatch: pytest.MonkeyPatch) -> None:
    taken, free = free_ports(2)
    monkeypatch.setattr(ports, "_given", set())
    with socket.create_server(("127.0.0.1", taken)), patch.object(ports, "_chance") as chance:
        chance.randrange.side_effect = [taken, free]
        assert free_port() == free


def test_one_that_somebody_holds_is_given_to_who_names_it_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    (free,) = free_ports(1)
    with HeldPorts() as held:
        taken = held.claim("127.0.0.1")
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


def test_one_can_be_kept_where_its_server_has_just_gone_and_not_where_one_serves() -> None:
    with HeldPorts() as held:
        place = "127.0.0.1", held.claim("127.0.0.1")
        with socket.create_server(place) as server, socket.create_connection(place) as client:
            server.accept()[0].close()
            assert client.recv(1) == b""
            with pytest.raises(OSError, match="in use"):
                ports.held(*place, alone=False)
            held.keep(*place)  # whose server it is will say so
        ports.held(*place, alone=False).close()


@pytest.mark.parametrize(("text", "first"), [("32768\t60999\n", 32768), ("1024\t65535\n", 32768)])
def test_a_kernel_that_gives_nearly_all_of_them_leaves_no_room_beneath(
    text: str, first: int, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    range_of = tmp_path_factory.mktemp("proc") / "range"
    range_of.write_text(text)
    monkeypatch.setattr(ports, "RANGE", range_of)
    assert ports.first_ephemeral() == first
