"""Ports for servers that must be told theirs: of nobody, and of nobody soon."""

from __future__ import annotations

import socket
from unittest.mock import patch

import pytest

from ottla import free_ports as ports
from ottla.free_ports import free_port, free_ports


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


@pytest.mark.parametrize(("text", "first"), [("32768\t60999\n", 32768), ("1024\t65535\n", 32768)])
def test_a_kernel_that_gives_nearly_all_of_them_leaves_no_room_beneath(
    text: str, first: int, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    range_of = tmp_path_factory.mktemp("proc") / "range"
    range_of.write_text(text)
    monkeypatch.setattr(ports, "RANGE", range_of)
    assert ports.first_ephemeral() == first
