"""Apache Kafka starts even if another process has taken its port before it binds."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from unittest.mock import patch

import pytest

from ottla.free_ports import free_port
from rivals import apache_kafka as rival


@pytest.fixture
def taken() -> Iterator[int]:
    port = free_port()
    with socket.socket() as somebody:
        somebody.bind(("127.0.0.1", port))  # without listening, like the local end of a connection
        yield port


def test_it_starts_on_another_port(taken: int) -> None:
    rival.fetch()
    first = rival.new_ports(["PLAIN2"])._replace(others={"PLAIN2": taken})
    with patch.object(rival, "new_ports", side_effect=[first, rival.new_ports(["PLAIN2"])]):
        settings = {"listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,PLAIN2:PLAINTEXT"}
        with rival.apache_kafka(settings, listeners=["PLAIN2"]) as kafka:
            assert kafka.listeners["PLAIN2"] != rival.at(taken)
            assert kafka.bootstrap_servers != rival.at(first.broker)
