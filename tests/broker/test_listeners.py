"""Several listeners: each is served, and each tells its clients the address by which they can come back."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from ottla.broker.embedded import Broker
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


def told(address: str) -> set[str]:
    """Every address that a client hears of which comes by this one."""
    with Wire(address) as wire:
        (broker,) = wire.ask(MetadataRequest([])).brokers
        (same,) = wire.ask(DescribeClusterRequest()).brokers
        coordinator = wire.ask(FindCoordinatorRequest(key="g"), 3)
    return {f"{each.host}:{each.port}" for each in (broker, same, coordinator)}


def test_a_client_is_told_the_address_by_which_it_came_or_the_advertised_one(three: Broker) -> None:
    inner, outer, newer = three.addresses.values()
    assert list(three.addresses) == ["IN", "OUT", "V6"]
    assert three.bootstrap_servers == inner
    assert told(inner) == {inner}
    assert told(outer) == {"broker.example.org:19094"}
    assert told(newer.replace("[::1]", "::1")) == {newer.replace("[::1]", "::1")}


def test_what_is_written_by_one_listener_is_read_by_another() -> None:
    with Broker(listen="127.0.0.1:0,127.0.0.1:0") as broker:
        one, two = broker.addresses.values()
        assert one != two
        with Wire(one) as writer, Wire(two) as reader:
            writer.create("t")
            writer.produce("t", b"a")
            assert reader.fetch("t").high_watermark == 1


def test_when_one_of_two_ports_is_taken_the_other_is_free_again() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with Broker() as first:
        broker = Broker(listen=f"A://127.0.0.1:{port},B://{first.bootstrap_servers}")
        with pytest.raises(Exception, match="the port is taken"):
            broker.start()
    socket.create_server(("127.0.0.1", port)).close()
