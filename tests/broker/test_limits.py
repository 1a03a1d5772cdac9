"""Limits: connections in all and per address, memory for requests, and peers that are slow on purpose."""

from __future__ import annotations

import os
import resource
import socket
import struct
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

import psutil
import pytest

from ottla.broker.embedding.embedded_broker import Broker
from ottla.broker.network_server.admission import ConnectionLimits, affordable_connections, describe_remedy
from ottla.broker.settings.connection_limits import read_overrides
from ottla.errors import ConfigError
from ottla.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from ottla.protocol.messages.metadata import MetadataRequest
from tests.broker.test_connections import MB, many_files  # noqa: F401 - a fixture
from tests.broker.wire import Wire, batch, produce
from tests.patience import eventually


def test_the_limit_of_an_address_precedes_the_general_limit_of_connections() -> None:
    admission = ConnectionLimits(2, {"10.0.0.5": 1})
    assert [admission.admit("10.0.0.1") for _ in range(3)] == [True, True, False]
    assert [admission.admit("10.0.0.5") for _ in range(2)] == [True, False]
    admission.release("10.0.0.1")
    assert admission.admit("10.0.0.1")


def test_limits_of_single_addresses_are_parsed() -> None:
    assert read_overrides(["10.0.0.5:200", "[::1]:3"]) == {"10.0.0.5": 200, "::1": 3}
    assert read_overrides(["localhost:7"])["127.0.0.1"] == 7
    for text in ("10.0.0.5", "10.0.0.5:", ":5", "a:b"):
        with pytest.raises(ConfigError, match=r"must be host:number"):
            read_overrides([text])


def test_descriptors_are_reserved_for_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("resource.getrlimit", lambda _: (1024, 4096))
    assert affordable_connections(2**31 - 1) == 768
    assert affordable_connections(10) == 10
    assert describe_remedy() == "raise max.connections, or the limit of open files (ulimit -n), which is 1024"


def test_above_the_limit_new_connections_wait_until_one_is_closed(caplog: pytest.LogCaptureFixture) -> None:
    with Broker(max_connections=2) as broker:
        first, second = Wire(broker.bootstrap_servers), Wire(broker.bootstrap_servers)
        first.ask(MetadataRequest([]), 1)
        second.ask(MetadataRequest([]), 1)
        with Wire(broker.bootstrap_servers) as third:
            third.send(MetadataRequest([]), 1)
            second.ask(MetadataRequest([]), 1)
            third.socket.setblocking(False)
            with pytest.raises(BlockingIOError):
                third.socket.recv(1)
            third.socket.settimeout(20)
            first.socket.close()
            assert third.receive(MetadataRequest([]), 1)[1].topics == []
        second.socket.close()
    assert "the limit of connections is reached, and new connections wait: raise max.connections" in caplog.text


def test_a_connection_above_the_limit_of_its_address_is_closed_and_the_others_stay() -> None:
    with Broker(max_connections_per_ip=2) as broker, ExitStack() as stack:
        two = [stack.enter_context(Wire(broker.bootstrap_servers)) for _ in range(2)]
        for wire in two:
            wire.ask(MetadataRequest([]), 1)
        with Wire(broker.bootstrap_servers) as third:
            assert third.hung_up()
        two[0].socket.close()
        with Wire(broker.bootstrap_servers) as other:
            two[1].ask(MetadataRequest([]), 1)
            other.ask(MetadataRequest([]), 1)


def test_half_a_frame_blocks_no_other_client(wire: Wire, broker: Broker) -> None:
    with ExitStack() as stack:
        for sent in (b"\0", struct.pack(">i", 100), struct.pack(">i", 50_000_000) + bytes(500_000)):
            slow = stack.enter_context(Wire(broker.bootstrap_servers))
            slow.socket.sendall(sent)
        wire.create("t")
        assert wire.produce("t", b"a").error_code == 0


@contextmanager
def halves(broker: Broker, count: int, size: int) -> Iterator[list[Wire]]:
    """Connections that have each sent some of a request of `size` bytes, as much as was taken."""
    with ExitStack() as stack:
        wires = [stack.enter_context(Wire(broker.bootstrap_servers)) for _ in range(count)]
        frame = struct.pack(">i", size) + bytes(size // 2)
        for wire in wires:
            wire.socket.setblocking(False)
            try:
                wire.socket.send(frame)
            except BlockingIOError:
                pass
        yield wires


def test_a_large_request_is_accepted_while_partial_ones_use_all_the_memory() -> None:
    with Broker(queued_max_request_bytes=1_000_000) as broker, Wire(broker.bootstrap_servers) as wire:
        wire.create("t", max_message_bytes=20_000_000)
        data = batch([os.urandom(5_000_000)])
        with ExitStack() as stack:
            for _ in range(8):
                half = stack.enter_context(Wire(broker.bootstrap_servers))
                half.socket.setblocking(False)
                half.socket.send(struct.pack(">i", 300_000) + bytes(200_000))
            others = [stack.enter_context(Wire(broker.bootstrap_servers)) for _ in range(3)]
            wire.ask(MetadataRequest([]), 1)
            for half_way in range(2):
                for other in others:
                    assert other.ask(MetadataRequest([]), 1).topics == []
                assert wire.produce("t", bytes(10_000)).error_code == 0, half_way
        # The connections that used it are closed.
        assert wire.ask(produce("t", data), 9).responses[0].partition_responses[0].error_code == 0


def test_many_large_requests_at_once_are_all_answered_within_little_memory() -> None:
    with Broker(queued_max_request_bytes=4_000_000) as broker, ExitStack() as stack:
        wires = [stack.enter_context(Wire(broker.bootstrap_servers)) for _ in range(40)]
        wires[0].create("t", max_message_bytes=20_000_000)
        data = batch([os.urandom(2_000_000)])
        senders = [threading.Thread(target=wire.send, args=(produce("t", data), 9)) for wire in wires]
        for sender in senders:
            sender.start()
        results = [wire.receive(produce("t", None), 9)[1].responses[0].partition_responses[0] for wire in wires]
        for sender in senders:
            sender.join()
        assert sorted(result.base_offset for result in results) == list(range(40))


@pytest.mark.usefixtures("many_files")
def test_1000_connections_with_large_requests_do_not_exhaust_the_memory() -> None:
    with Broker(process=True, queued_max_request_bytes=32 * MB) as broker, Wire(broker.bootstrap_servers) as wire:
        wire.create("t")
        process = psutil.Process(broker.pid)
        before = process.memory_info().rss
        with halves(broker, 1000, 2 * MB) as wires:
            for _ in range(20):
                assert wire.produce("t", b"a").error_code == 0
            assert process.memory_info().rss - before < 32 * MB + 1000 * 64 * 1024 + 20 * MB
            for one in wires[:3]:
                one.socket.shutdown(socket.SHUT_RDWR)
        assert wire.produce("t", b"a").error_code == 0


@pytest.mark.usefixtures("many_files")
def test_partial_requests_exceed_the_memory_limit_by_one_request_at_most_and_are_freed() -> None:
    with Broker(process=True, queued_max_request_bytes=32 * MB) as broker, Wire(broker.bootstrap_servers) as wire:
        wire.create("t")
        process = psutil.Process(broker.pid)
        before = process.memory_info().rss
        with halves(broker, 60, 8 * MB) as wires:
            senders = [threading.Thread(target=send_on, args=(one, 4 * MB), daemon=True) for one in wires]
            for sender in senders:
                sender.start()
            for _ in range(200):
                assert wire.produce("t", b"a").error_code == 0
                assert process.memory_info().rss - before < (32 + 8 + 10) * MB
            for one in wires:
                one.socket.shutdown(socket.SHUT_RDWR)
            for sender in senders:
                sender.join()
        eventually(lambda: process.memory_info().rss - before < 10 * MB)


def send_on(wire: Wire, size: int) -> None:
    """Send more of a started request for as long as the broker accepts it."""
    try:
        wire.socket.setblocking(True)
        wire.socket.sendall(bytes(size))
    except OSError:
        pass


@pytest.mark.skipif(sys.platform != "linux", reason="the limits of another process are Linux's to set")
def test_a_broker_at_its_memory_limit_closes_connections_that_need_more_and_serves_the_others() -> None:
    with Broker(process=True) as broker, Wire(broker.bootstrap_servers) as wire:
        wire.create("t")
        process = psutil.Process(broker.pid)
        most = process.memory_info().vms + 200 * MB
        resource.prlimit(broker.pid, resource.RLIMIT_AS, (most, most))
        with halves(broker, 30, 60 * MB) as wires:
            senders = [threading.Thread(target=send_on, args=(one, 50 * MB), daemon=True) for one in wires]
            for sender in senders:
                sender.start()
            eventually(lambda: not all(sender.is_alive() for sender in senders))
            for _ in range(50):
                assert wire.produce("t", b"a").error_code == 0
            for one in wires:
                with suppress(OSError):
                    one.socket.shutdown(socket.SHUT_RDWR)
            for sender in senders:
                sender.join()
        assert wire.produce("t", b"a").error_code == 0


@contextmanager
def broker_of_few_descriptors() -> Iterator[Broker]:
    """A broker that may open 256 files, as by `ulimit -n 256`."""
    with Broker(process=True) as broker:
        resource.prlimit(broker.pid, resource.RLIMIT_NOFILE, (256, 256))
        with Wire(broker.bootstrap_servers) as wire:  # the limit is checked when the setting changes
            config = AlterableConfig("max.connections", 0, "1000000")
            request = IncrementalAlterConfigsRequest([AlterConfigsResource(4, "", [config])])
            assert not wire.ask(request, 1).responses[0].error_code
        yield broker


@pytest.mark.usefixtures("many_files")
@pytest.mark.skipif(sys.platform != "linux", reason="the limits of another process are Linux's to set")
def test_idle_connections_leave_descriptors_for_new_segments() -> None:
    with broker_of_few_descriptors() as broker, Wire(broker.bootstrap_servers) as wire, ExitStack() as stack:
        names = [f"t{number}" for number in range(60)]
        for name in names:
            wire.create(name, segment_bytes=1 << 20)
            assert wire.produce(name, b"a").error_code == 0
        process = psutil.Process(broker.pid)
        before = process.num_fds()
        for _ in range(300):
            stack.enter_context(Wire(broker.bootstrap_servers))
        eventually(lambda: process.num_fds() > before + 80)
        data = os.urandom(400_000)
        for name in names * 3:
            assert wire.produce(name, data).error_code == 0
        assert process.num_fds() < 256


@pytest.mark.usefixtures("many_files")
@pytest.mark.skipif(sys.platform != "linux", reason="the limits of another process are Linux's to set")
def test_a_new_connection_replaces_one_that_has_sent_nothing() -> None:
    with broker_of_few_descriptors() as broker, Wire(broker.bootstrap_servers) as known, ExitStack() as stack:
        known.ask(MetadataRequest([]), 1)
        for _ in range(200):
            stack.enter_context(Wire(broker.bootstrap_servers))
        with Wire(broker.bootstrap_servers) as newcomer:
            assert newcomer.ask(MetadataRequest([]), 1).topics == []
        assert known.ask(MetadataRequest([]), 1).topics == []
