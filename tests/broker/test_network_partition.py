"""Connections to an unreachable node, as after a network partition."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.broker.embedding.embedded_broker import Broker
from ottla.broker.embedding.local_network_partition import NetworkSides, list_addresses
from ottla.broker.embedding.local_nodes import LocalNode, build_settings
from ottla.broker.peers.peer_connection import CONNECT_SECONDS
from ottla.broker.peers.peer_errors import PeerLost
from ottla.broker.settings.config import BrokerConfig, read_config
from ottla.coordination.quorum.observer import Address
from ottla.protocol.messages.describe_cluster import DescribeClusterResponse
from tests.broker.security.test_peer_connection import Loop


@pytest.fixture(scope="module")
def there() -> Iterator[Address]:
    """Return the address of a broker."""
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


def test_a_request_to_an_isolated_peer_is_sent_after_the_partition_heals(loop: Loop, there: Address) -> None:
    loop.split.isolate([there])
    loop.ask(there)
    turns(loop)
    assert not loop.heard
    assert not loop.selector.connected
    loop.split.isolate([])
    assert is_answer(loop.next())


def test_a_connection_continues_after_the_partition_heals(loop: Loop, there: Address) -> None:
    assert is_answer(loop.answer(there))
    before = loop.selector.local(loop.connection)
    loop.split.isolate([there])
    loop.ask(there)
    turns(loop)
    assert not loop.heard
    loop.split.isolate([])
    assert is_answer(loop.next())
    assert loop.selector.local(loop.connection) == before


def test_a_response_in_transit_is_not_delivered_during_the_partition(loop: Loop, there: Address) -> None:
    assert is_answer(loop.answer(there))
    loop.ask(there)
    loop.split.isolate([there])
    turns(loop)
    assert not loop.heard
    loop.split.isolate([])
    assert is_answer(loop.next())


def test_a_connection_attempt_is_completed_after_the_partition_heals(loop: Loop, there: Address) -> None:
    loop.ask(there)
    loop.split.isolate([there])
    turns(loop)
    assert not loop.heard
    loop.split.isolate([])
    assert is_answer(loop.next())


def test_a_connection_attempt_to_an_isolated_peer_times_out(loop: Loop, there: Address) -> None:
    loop.split.isolate([there])
    loop.ask(there)
    loop.clock.advance(CONNECT_SECONDS - 0.1)
    turns(loop)
    assert not loop.heard
    loop.clock.advance(0.2)
    assert isinstance(loop.next(), PeerLost)
    loop.split.isolate([])
    assert is_answer(loop.answer(there))


def test_other_peers_are_reachable_during_the_partition(loop: Loop, there: Address) -> None:
    loop.split.isolate([Address("127.0.0.1", 1)])
    assert is_answer(loop.answer(there))


def test_the_ports_of_both_roles_of_a_node_are_isolated(tmp_path: Path) -> None:
    nodes = [LocalNode(n, "127.0.0.1", 1000 + n, 2000 + n if n < 3 else None, "") for n in (1, 2, 3)]
    configs = {node.node_id: read_config(build_settings(node, nodes, tmp_path, {})) for node in nodes}
    assert list_addresses(configs[1]) == {("127.0.0.1", 1001), ("127.0.0.1", 2001)}
    assert list_addresses(configs[3]) == {("127.0.0.1", 1003)}
    sides = NetworkSides()
    sides.cut_off([1, 3])
    assert sides.apart_from(1, configs) == sides.apart_from(3, configs) == list(list_addresses(configs[2]))
    assert set(sides.apart_from(2, configs)) == list_addresses(configs[1]) | list_addresses(configs[3])
    sides.cut_off([3])
    assert set(sides.apart_from(1, configs)) == list_addresses(configs[2]) | list_addresses(configs[3])
    sides.heal()
    assert not sides
    assert sides.apart_from(1, configs) == []
