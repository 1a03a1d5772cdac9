"""Several listeners: each is served, and returns its advertised address to its clients."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from ottla.broker.embedding.embedded_broker import Broker
from ottla.protocol.messages.describe_cluster import DescribeClusterRequest
from ottla.protocol.messages.find_coordinator import FindCoordinatorRequest
from ottla.protocol.messages.metadata import MetadataRequest
from tests.broker.wire import Wire

ADVERTISED = "OUT://broker.example.org:19094"
LISTEN = "IN://127.0.0.1:0,OUT://127.0.0.1:0,V6://[::1]:0"


@pytest.fixture(params=[False, True], ids=["thread", "process"])
def three(request: pytest.FixtureRequest) -> Iterator[Broker]:
    """A broker with three listeners, one of them behind another address."""
    with Broker(listen=LISTEN, advertised_listeners=ADVERTISED, process=request.param) as broker:
        yield broker


def list_addresses(address: str) -> set[str]:
    """Return every address that a client of this address receives."""
    with Wire(address) as wire:
        (broker,) = wire.ask(MetadataRequest([])).brokers
        (same,) = wire.ask(DescribeClusterRequest()).brokers
        coordinator = wire.ask(FindCoordinatorRequest(key="g"), 3)
    return {f"{each.host}:{each.port}" for each in (broker, same, coordinator)}


def test_a_client_gets_the_address_it_connected_to_or_the_advertised_one(three: Broker) -> None:
    inner, outer, newer = three.addresses.values()
    assert list(three.addresses) == ["IN", "OUT", "V6"]
    assert three.bootstrap_servers == inner
    assert list_addresses(inner) == {inner}
    assert list_addresses(outer) == {"broker.example.org:19094"}
    assert list_addresses(newer.replace("[::1]", "::1")) == {newer.replace("[::1]", "::1")}


def test_a_record_written_through_one_listener_is_read_through_another() -> None:
    with Broker(listen="127.0.0.1:0,127.0.0.1:0") as broker:
        one, two = broker.addresses.values()
        assert one != two
        with Wire(one) as writer, Wire(two) as reader:
            writer.create("t")
            writer.produce("t", b"a")
            assert reader.fetch("t").high_watermark == 1


def test_if_one_of_two_ports_is_in_use_the_other_is_freed() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with Broker() as first:
        broker = Broker(listen=f"A://127.0.0.1:{port},B://{first.bootstrap_servers}")
        with pytest.raises(Exception, match="the port is taken"):
            broker.start()
    socket.create_server(("127.0.0.1", port)).close()
