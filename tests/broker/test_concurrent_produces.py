"""Produces that wait for other brokers do not hold back those behind them: all are appended, and answered in order."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from ottla.broker.embedding.embedded_broker import Broker, InThread
from ottla.broker.network_server.connection import MOST_BEHIND
from ottla.broker.node import BrokerNode
from ottla.errors import ErrorCode
from ottla.protocol.messages.metadata import MetadataRequest
from ottla.protocol.messages.produce import PartitionProduceResponse, ProduceRequest
from tests.broker.test_replicated_partitions import EPOCH, ME, OTHER, ends_at, follow, found, in_loop, lead
from tests.broker.wire import Wire, batch, produce
from tests.patience import eventually


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker(node_id=ME) as broker, Wire(broker.bootstrap_servers) as wire:
        wire.create("t")
        lead(broker, ME, OTHER)
        yield broker


@pytest.fixture
def wire(broker: Broker) -> Iterator[Wire]:
    with Wire(broker.bootstrap_servers) as wire:
        yield wire


@pytest.fixture
def follower(broker: Broker) -> Iterator[Wire]:
    with Wire(broker.bootstrap_servers) as wire:
        yield wire


def send(wire: Wire, topic: str = "t", acks: int = -1, timeout_ms: int = 60_000) -> int:
    request = produce(topic, batch([b"a"]))
    request.acks, request.timeout_ms = acks, timeout_ms
    return wire.send(request, 11)


def receive(wire: Wire) -> tuple[int, PartitionProduceResponse]:
    correlation_id, response = wire.receive(produce("t", None), 11)
    return correlation_id, response.responses[0].partition_responses[0]


def appended(broker: Broker, count: int) -> None:
    """Wait until the log has so many records."""
    eventually(lambda: ends_at(broker, found, count))


def copied(follower: Wire, count: int) -> None:
    """The other broker has so many."""
    assert not follow(follower, count, EPOCH).error_code


def test_produces_are_appended_while_others_wait_and_answered_together(
    broker: Broker, wire: Wire, follower: Wire
) -> None:
    asked = [send(wire) for _ in range(20)]
    appended(broker, 20)
    copied(follower, 20)
    answers = [receive(wire) for _ in asked]
    assert [correlation_id for correlation_id, _ in answers] == asked
    assert [(each.error_code, each.base_offset) for _, each in answers] == [(0, number) for number in range(20)]


def test_a_ready_response_waits_for_the_ones_before_it(broker: Broker, wire: Wire, follower: Wire) -> None:
    asked = [send(wire), send(wire, acks=1), send(wire, topic="none"), send(wire, timeout_ms=1), send(wire)]
    appended(broker, 4)
    copied(follower, 1)
    answers = [receive(wire) for _ in range(3)]
    codes = (0, 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert [(each, found.error_code) for each, found in answers] == list(zip(asked, codes, strict=False))
    assert receive(wire)[1].error_code == ErrorCode.REQUEST_TIMED_OUT
    copied(follower, 4)
    correlation_id, last = receive(wire)
    assert (correlation_id, last.base_offset) == (asked[-1], 3)


def test_another_request_waits_until_all_produces_are_answered(broker: Broker, wire: Wire, follower: Wire) -> None:
    before = [send(wire), send(wire)]
    metadata, behind = wire.send(MetadataRequest(None), 12), send(wire)
    appended(broker, 2)
    copied(follower, 2)
    assert [receive(wire)[0] for _ in before] == before
    assert wire.receive(MetadataRequest(), 12)[0] == metadata
    appended(broker, 3)
    copied(follower, 3)
    assert receive(wire)[0] == behind


def test_the_number_of_concurrent_produces_is_limited(broker: Broker, wire: Wire, follower: Wire) -> None:
    asked = [send(wire) for _ in range(2 * MOST_BEHIND)]
    appended(broker, MOST_BEHIND + 1)
    copied(follower, MOST_BEHIND + 1)
    appended(broker, 2 * MOST_BEHIND)
    copied(follower, 2 * MOST_BEHIND)
    assert [receive(wire)[0] for _ in asked] == asked


def test_nothing_remains_of_a_disconnected_client(broker: Broker, follower: Wire) -> None:
    with Wire(broker.bootstrap_servers) as wire:
        for _ in range(5):
            send(wire)
        send(wire, acks=1)
        appended(broker, 6)

    def waiting(node: BrokerNode) -> int:
        leadership = found(node).leadership
        assert leadership is not None
        return len(leadership.waiting)

    def is_forgotten() -> bool:
        seen: list[int] = []
        in_loop(broker, lambda node: seen.append(waiting(node)))
        return seen == [0]

    eventually(is_forgotten)
    copied(follower, 6)
    running = broker._running
    assert isinstance(running, InThread)
    eventually(lambda: running._server._sockets.memory.handed_out == 0)


def test_a_stopping_broker_answers_all_waiting_produces(broker: Broker, wire: Wire) -> None:
    asked = [send(wire) for _ in range(5)]
    appended(broker, 5)
    broker.close()
    answers = [receive(wire) for _ in asked]
    assert [(each, found.error_code) for each, found in answers] == [
        (each, ErrorCode.REQUEST_TIMED_OUT) for each in asked
    ]


def test_waiting_produces_keep_no_records_in_memory(broker: Broker, wire: Wire, follower: Wire) -> None:
    before = len([each for each in gc.get_objects() if isinstance(each, ProduceRequest)])
    asked = [send(wire) for _ in range(20)]
    appended(broker, 20)
    gc.collect()
    assert len([each for each in gc.get_objects() if isinstance(each, ProduceRequest)]) <= before
    copied(follower, 20)
    assert [receive(wire)[0] for _ in asked] == asked
