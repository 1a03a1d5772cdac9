"""Many connections, idle ones, and memory that does not grow with what passes through."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from contextlib import ExitStack

import psutil
import pytest

from ottla.broker.embedding.embedded_broker import Broker
from ottla.protocol.messages.metadata import MetadataRequest
from tests.broker.wire import Wire, batch, fetch, produce

MB = 1_000_000


@pytest.fixture
def many_files() -> Iterator[None]:
    """Descriptors for both ends of 1,000 connections."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 4096)), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.usefixtures("many_files")
def test_1000_idle_connections_do_not_delay_other_clients(wire: Wire, broker: Broker) -> None:
    with ExitStack() as idle:
        connections = [idle.enter_context(Wire(broker.bootstrap_servers)) for _ in range(1000)]
        wire.create("t")
        assert wire.produce("t", b"a").error_code == 0
        assert all(connection.ask(MetadataRequest([]), 1).topics == [] for connection in connections[::50])


def test_100_waiting_fetches_of_one_partition_are_answered_by_one_append(wire: Wire, broker: Broker) -> None:
    wire.create("t")
    with ExitStack() as stack:
        waiting = [stack.enter_context(Wire(broker.bootstrap_servers)) for _ in range(100)]
        for connection in waiting:
            connection.send(fetch("t", max_wait_ms=60_000), 12)
        wire.produce("t", b"a")
        for connection in waiting:
            _, response = connection.receive(fetch("t"), 12)
            assert response.responses[0].partitions[0].high_watermark == 1


def test_an_idle_connection_is_closed_after_its_maximum_idle_time() -> None:
    with Broker(connections_max_idle_ms=200) as broker, Wire(broker.bootstrap_servers) as wire:
        wire.ask(MetadataRequest([]), 1)
        assert wire.hung_up()


def test_200_megabytes_through_a_connection_do_not_increase_memory() -> None:
    with Broker(process=True) as broker, Wire(broker.bootstrap_servers) as wire:
        process = psutil.Process(broker.pid)
        wire.create("t", partitions=2)
        data = batch([os.urandom(1000) for _ in range(1000)])

        def pass_through(megabytes: int) -> None:
            for _ in range(megabytes):
                offset = wire.ask(produce("t", data), 9).responses[0].partition_responses[0].base_offset
                wire.receive_frame_of(fetch("t", offset, partition_max_bytes=2**21))

        pass_through(20)
        before = process.memory_info().rss
        pass_through(200)
        assert process.memory_info().rss - before < 10 * MB
