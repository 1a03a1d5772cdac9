"""Conversations with a node of whom nothing is heard for a while, as after a pulled cable."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.broker.embedded import Broker
from ottla.broker.local_nodes import LocalNode, settings_of
from ottla.broker.local_split import Sides, places_of
from ottla.broker.peers.peer_connection import CONNECT_SECONDS
from ottla.broker.peers.peer_errors import PeerLost
from ottla.broker.settings.config import BrokerConfig, read_config
from ottla.coordination.quorum.observer import Address
from ottla.protocol.messages.describe_cluster import DescribeClusterResponse
from tests.broker.security.test_peer_connection import Loop


@pytest.fixture(scope="module")
def there() -> Iterator[Address]:
    """Where a broker answers."""
    with Broker() as broker:
        host, _, port = broker.bootstrap_servers.rpartition(":")
        yield Address(host, int(port))


@pytest.fixture
def loop() -> Iterator[Loop]:
    loop = Loop(BrokerConfig())
    yield loop
    loop.close()


def is_answer(heard: object) -> bool:
    return isinstance(heard, DescribeClusterResponse)


def turns(loop: Loop, count: int = 20) -> None:
    for _ in range(count):
        loop.turn()


def test_who_is_split_off_is_asked_when_it_is_seen_again(loop: Loop, there: Address) -> None:
    loop.split.keep_apart([there])
    loop.ask(there)
    turns(loop)
    assert not loop.heard
    assert not loop.selector.connected
    loop.split.keep_apart([])
    assert is_answer(loop.next())


def test_a_connection_goes_on_where_it_stood(loop: Loop, there: Address) -> None:
    assert is_answer(loop.answer(there))
    before = loop.selector.local(loop.connection)
    loop.split.keep_apart([there])
    loop.ask(there)
    turns(loop)
    assert not loop.heard
    loop.split.keep_apart([])
    assert is_answer(loop.next())
    assert loop.selector.local(loop.connection) == before


def test_an_answer_on_its_way_is_not_heard_before(loop: Loop, there: Address) -> None:
    assert is_answer(loop.answer(there))
    loop.ask(there)
    loop.split.keep_apart([there])
    turns(loop)
    assert not loop.heard
    loop.split.keep_apart([])
    assert is_answer(loop.next())


def test_a_connection_that_is_being_made_is_made_later(loop: Loop, there: Address) -> None:
    loop.ask(there)
    loop.split.keep_apart([there])
    turns(loop)
    assert not loop.heard
    loop.split.keep_apart([])
    assert is_answer(loop.next())


def test_it_is_given_up_as_where_no_packet_comes_back(loop: Loop, there: Address) -> None:
    loop.split.keep_apart([there])
    loop.ask(there)
    loop.clock.advance(CONNECT_SECONDS - 0.1)
    turns(loop)
    assert not loop.heard
    loop.clock.advance(0.2)
    assert isinstance(loop.next(), PeerLost)
    loop.split.keep_apart([])
    assert is_answer(loop.answer(there))


def test_others_are_asked_all_the_while(loop: Loop, there: Address) -> None:
    loop.split.keep_apart([Address("127.0.0.1", 1)])
    assert is_answer(loop.answer(there))


def test_sides_hide_the_ports_of_both_halves_of_a_node_from_each_other(tmp_path: Path) -> None:
    nodes = [LocalNode(n, "127.0.0.1", 1000 + n, 2000 + n if n < 3 else None, "") for n in (1, 2, 3)]
    configs = {node.node_id: read_config(settings_of(node, nodes, tmp_path, {})) for node in nodes}
    assert places_of(configs[1]) == {("127.0.0.1", 1001), ("127.0.0.1", 2001)}
    assert places_of(configs[3]) == {("127.0.0.1", 1003)}
    sides = Sides()
    sides.cut_off([1, 3])
    assert sides.apart_from(1, configs) == sides.apart_from(3, configs) == list(places_of(configs[2]))
    assert set(sides.apart_from(2, configs)) == places_of(configs[1]) | places_of(configs[3])
    sides.cut_off([3])
    assert set(sides.apart_from(1, configs)) == places_of(configs[2]) | places_of(configs[3])
    sides.heal()
    assert not sides
    assert sides.apart_from(1, configs) == []
