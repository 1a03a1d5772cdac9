"""Brokers that accept connections and never respond: a client switches to another broker after a second."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from ottla import Admin, Consumer, Producer, aio
from ottla.client.network.connection_states import SLOW_SECONDS
from ottla.client.network.in_flight_requests import InFlightRequests
from ottla.client.network.least_loaded import choose_least_loaded
from ottla.model import Node
from tests.client.conftest import fresh_name
from tests.client.network.test_connection_states import states

SILENT = 4
MOST_SECONDS = 15.0
"""A second for each silent broker and a busy machine's delays; without another try it is request.timeout.ms, 30 s."""


@pytest.fixture
def addresses(servers: str) -> Iterator[str]:
    """Some brokers that never answer, followed by one that does."""
    with ExitStack() as stack:
        silent = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(SILENT)]
        yield ",".join([*(f"127.0.0.1:{each.getsockname()[1]}" for each in silent), servers])


def send(addresses: str, topic: str) -> None:
    with Producer(bootstrap_servers=addresses, linger_ms=0) as producer:
        assert producer.send(topic, b"v").result(MOST_SECONDS).topic == topic


def list_topics(addresses: str, topic: str) -> None:
    with Admin(bootstrap_servers=addresses) as admin:
        assert topic in admin.list_topics()


def commit(addresses: str, topic: str) -> None:
    with Consumer(bootstrap_servers=addresses, group_id=fresh_name()) as consumer:
        consumer.subscribe([topic])
        assert topic in consumer.topics()
        consumer.commit({})


def send_in_asyncio(addresses: str, topic: str) -> None:
    async def story() -> None:
        async with aio.Producer(bootstrap_servers=addresses, linger_ms=0) as producer:
            await (await producer.send(topic, b"v"))

    asyncio.run(story())


@pytest.mark.parametrize("use", [send, list_topics, commit, send_in_asyncio])
def test_a_client_continues_with_a_responsive_broker(
    addresses: str, topic: str, use: Callable[[str, str], Any]
) -> None:
    began = time.monotonic()
    use(addresses, topic)
    assert time.monotonic() - began < MOST_SECONDS


NODES = [Node(number, "kafka.example.org", 9092 + number) for number in (1, 2)]


def test_another_broker_is_tried_while_one_connects_slowly() -> None:
    nodes, in_flight = states(), InFlightRequests(5)
    nodes.start_connecting(1, now=0)
    assert choose_least_loaded(NODES, nodes, in_flight, SLOW_SECONDS / 2) == NODES[0]
    assert nodes.time_to_slow(1, SLOW_SECONDS / 2) == SLOW_SECONDS / 2
    nodes.start_api_versions_check(1)
    assert choose_least_loaded(NODES, nodes, in_flight, SLOW_SECONDS) == NODES[1]
    nodes.start_connecting(2, now=SLOW_SECONDS)
    nodes.mark_ready(1)
    assert choose_least_loaded(NODES, nodes, in_flight, SLOW_SECONDS) == NODES[0], "it has come to answer"


def test_a_slow_broker_is_waited_for_if_it_is_the_only_one() -> None:
    nodes, in_flight = states(), InFlightRequests(5)
    nodes.start_connecting(1, now=0)
    assert choose_least_loaded(NODES[:1], nodes, in_flight, 10 * SLOW_SECONDS) == NODES[0]
    assert choose_least_loaded(NODES, nodes, in_flight, 0, slow=NODES[1:]) == NODES[0]
