"""Requests and responses of a connection are paired and in order, for any client and clock."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ottla.broker.embedding.embedded_broker import Broker
from ottla.network.channel import Channel
from ottla.protocol.conversation import encode_request
from ottla.protocol.messages.api_versions import ApiVersionsRequest
from ottla.protocol.messages.fetch import FetchResponse
from ottla.protocol.messages.metadata import MetadataRequest
from tests.broker.wire import LENGTH, Wire, batch, fetch, produce, values
from tests.patience import eventually


@pytest.mark.behaviour("B1")
def test_pipelined_requests_are_answered_in_order(wire: Wire) -> None:
    wire.create("t")
    sent = []
    for number in range(200):
        wire.send(produce("t", batch([b"%d" % number])), 9)
        wire.send(ApiVersionsRequest("a", "1"), 4)
        sent += [wire.correlation_id - 1, wire.correlation_id]
    received = []
    for number in range(200):
        correlation_id, response = wire.receive(produce("t", None), 9)
        assert response.responses[0].partition_responses[0].base_offset == number
        received += [correlation_id, wire.receive(ApiVersionsRequest(), 4)[0]]
    assert received == sent


@pytest.mark.behaviour("B1")
def test_a_waiting_fetch_delays_later_requests_of_its_own_connection_only(wire: Wire, broker: Broker) -> None:
    wire.create("t")
    waiting = wire.send(fetch("t", max_wait_ms=60_000), 12)
    behind = [wire.send(MetadataRequest(None), 12) for _ in range(50)]
    with Wire(broker.bootstrap_servers) as other:
        other.ask(MetadataRequest(None))
        other.produce("t", b"a")
    correlation_id, response = wire.receive(fetch("t"), 12)
    assert correlation_id == waiting
    assert values(response.responses[0].partitions[0]) == [b"a"]
    assert [wire.receive(MetadataRequest(), 12)[0] for _ in behind] == behind


@pytest.mark.parametrize("version", [11, 12], ids=["the handler's way", "the short way"])
def test_a_waiting_fetch_is_answered_before_the_produce_that_completed_it(
    wire: Wire, broker: Broker, monkeypatch: pytest.MonkeyPatch, version: int
) -> None:
    wire.create("t")
    server = broker.server
    assert server is not None
    answered: list[int] = []

    def noted(way: Callable[..., int]) -> Callable[..., int]:
        def act(channel: Channel, *arguments: object) -> int:
            answered.append(channel.peer[1])
            return way(channel, *arguments)

        return act

    with Wire(broker.bootstrap_servers) as reader, Wire(broker.bootstrap_servers) as other:
        reader.send(fetch("t", max_wait_ms=60_000), version)
        eventually(lambda: len(server.node.waiting) == 1)
        for name in ("send", "write"):
            monkeypatch.setattr(Channel, name, noted(getattr(Channel, name)))
        assert other.produce("t", b"a").error_code == 0
        _, response = reader.receive(fetch("t"), version)
        assert values(response.responses[0].partitions[0]) == [b"a"]
        ports = [each.socket.getsockname()[1] for each in (reader, other)]
    assert list(dict.fromkeys(answered)) == ports


def test_a_client_that_reads_no_responses_gets_no_more_and_delays_no_other(wire: Wire, broker: Broker) -> None:
    wire.create("t", max_message_bytes=20_000_000)
    wire.produce("t", bytes(10_000_000))
    request = fetch("t", partition_max_bytes=2**30)
    asked = [wire.send(request, 12) for _ in range(20)]
    with Wire(broker.bootstrap_servers) as other:
        assert other.produce("t", b"a").error_code == 0
    for expected in asked:
        correlation_id, response = wire.receive(request, 12)
        assert isinstance(response, FetchResponse)
        assert correlation_id == expected
        assert len(response.responses[0].partitions[0].records or b"") > 10_000_000


def test_a_request_may_arrive_byte_by_byte(wire: Wire) -> None:
    from ottla.protocol.conversation import encode_request

    frame = b"".join(bytes(p) for p in encode_request(ApiVersionsRequest("a", "1"), 3, 9, "slow"))  # type: ignore[arg-type]
    for octet in len(frame).to_bytes(4, "big") + frame:
        wire.socket.sendall(bytes([octet]))
    assert wire.receive(ApiVersionsRequest(), 3)[0] == 9


def test_queued_responses_are_sent_before_the_connection_is_closed_for_a_later_error(broker: Broker) -> None:
    with Wire(broker.bootstrap_servers) as wire:
        frames = []
        for number in range(40):
            parts = encode_request(ApiVersionsRequest("test", "1"), 3, number, "c")
            frames.append(b"".join(bytes(part) for part in parts))  # type: ignore[arg-type]
        frames.append(b"\x7f\xff no request")
        wire.socket.sendall(b"".join(LENGTH.pack(len(frame)) + frame for frame in frames))
        for number in range(40):
            assert wire.receive(ApiVersionsRequest(), 3)[0] == number
        assert wire.hung_up()
