"""Missing brokers, servers of other kinds, and brokers that are killed."""

from __future__ import annotations

import logging
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ottla import Admin, Broker, Consumer, NewTopic, Producer, TopicPartition
from ottla.errors import BufferExhaustedError, IllegalStateError, KafkaTimeoutError, NoBrokersAvailableError
from ottla.free_ports import free_port
from tests.client.conftest import eventually

TP = TopicPartition("t", 0)


def call_admin(servers: str, patience_ms: int = 300) -> None:
    with Admin(bootstrap_servers=servers, default_api_timeout_ms=patience_ms) as client:
        client.list_topics()


def produce(servers: str, patience_ms: int = 300) -> None:
    with Producer(bootstrap_servers=servers, max_block_ms=patience_ms) as client:
        client.send("t", b"v")


def consume(servers: str, patience_ms: int = 300) -> None:
    with Consumer(bootstrap_servers=servers, default_api_timeout_ms=patience_ms) as client:
        client.assign([TP])
        while True:
            client.poll(0.1)


def look_up(servers: str, patience_ms: int = 300) -> None:
    with Consumer(bootstrap_servers=servers, default_api_timeout_ms=patience_ms) as client:
        client.end_offsets([TP])


EVERYBODY = pytest.mark.parametrize("act", [call_admin, produce, consume, look_up])


@contextmanager
def server_saying(answer: bytes) -> Iterator[str]:
    """A server that sends the same bytes to each client and closes the connection."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                peer, _ = listener.accept()
            except OSError:
                return
            with peer:
                try:
                    peer.sendall(answer)
                    peer.shutdown(socket.SHUT_WR)
                    while peer.recv(1000):
                        pass
                except OSError:
                    pass

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield f"127.0.0.1:{listener.getsockname()[1]}"
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(10)


@EVERYBODY
def test_an_address_without_a_listener_is_named_with_the_setting(act: Callable[[str], None]) -> None:
    servers = f"127.0.0.1:{free_port()}"
    started = time.monotonic()
    with pytest.raises(NoBrokersAvailableError) as caught:
        act(servers)
    assert time.monotonic() - started < 5
    for fact in (servers, "bootstrap.servers", "connection refused", "300 ms", ".ms"):
        assert fact in str(caught.value)


@EVERYBODY
@pytest.mark.parametrize(
    ("answer", "kind", "message"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "Kafka broker", "it speaks HTTP"),
        (b"<!DOCTYPE HTML>\n<html>", "Kafka broker", "bytes was announced"),
        (b"\x15\x03\x01\x00\x02", "plaintext port", "it answers with TLS"),
    ],
    ids=["HTTP", "HTML", "TLS"],
)
def test_a_server_of_another_kind_is_not_waited_for(
    act: Callable[[str, int], None], answer: bytes, kind: str, message: str
) -> None:
    with server_saying(answer) as servers, pytest.raises(NoBrokersAvailableError) as caught:
        act(servers, 60_000)
    assert f"not a {kind}: {servers} (from bootstrap.servers): " in str(caught.value)
    assert message in str(caught.value)


@EVERYBODY
def test_a_silent_server_fails_after_a_timeout(act: Callable[[str], None]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        servers = f"127.0.0.1:{listener.getsockname()[1]}"
        with pytest.raises(NoBrokersAvailableError, match=f"no answer from {servers}"):
            act(servers)


@EVERYBODY
def test_a_server_that_closes_the_connection_is_no_kafka_broker(act: Callable[[str, int], None]) -> None:
    with server_saying(b"") as servers, pytest.raises(NoBrokersAvailableError) as caught:
        act(servers, 60_000)
    assert re.search(f"not a Kafka broker: {servers}|{servers} .*: not a Kafka broker", str(caught.value))


def test_an_unknown_host_name_is_named() -> None:
    with pytest.raises(NoBrokersAvailableError, match=r"cannot resolve the host name 'nowhere\.invalid'"):
        produce("nowhere.invalid:9092")


class Victim:
    """A broker in a process of its own, to be killed."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.listen = "127.0.0.1:0"
        self.broker: Any = None
        self.start()

    def start(self) -> None:
        """Start the broker with its earlier directory and, after the first start, its earlier address."""
        self.broker = Broker(self.directory, listen=self.listen, process=True)
        self.broker.start()
        self.listen = self.broker.bootstrap_servers

    def kill(self) -> None:
        """Kill the process as the kernel does when memory is exhausted."""
        os.kill(self.broker._running.pid, signal.SIGKILL)
        self.broker.close()


@pytest.fixture
def victim(tmp_path: Path) -> Iterator[Victim]:
    broker = Victim(tmp_path)
    with Admin(bootstrap_servers=broker.listen) as admin:
        admin.create_topics([NewTopic("t", 1, 1)])
    yield broker
    broker.broker.close()


def test_records_sent_while_the_broker_is_killed_and_restarted_arrive_at_least_once(victim: Victim) -> None:
    with Producer(bootstrap_servers=victim.listen, linger_ms=1) as producer:
        futures = [producer.send("t", b"%d" % n) for n in range(3000)]
        victim.kill()
        futures += [producer.send("t", b"%d" % n) for n in range(3000, 6000)]
        victim.start()
        producer.flush(60)
        assert all(future.exception(0) is None for future in futures)
    seen: set[bytes] = set()
    with Consumer(bootstrap_servers=victim.listen, auto_offset_reset="earliest") as consumer:
        consumer.assign([TP])
        eventually(lambda: seen.update(r.value or b"" for r in consumer.poll(1)) or len(seen) == 6000)  # type: ignore[func-returns-value]


def test_a_consumer_continues_after_a_broker_restart(victim: Victim) -> None:
    with (
        Producer(bootstrap_servers=victim.listen) as producer,
        Consumer(bootstrap_servers=victim.listen, auto_offset_reset="earliest") as consumer,
    ):
        consumer.assign([TP])
        producer.send("t", b"before").result(20)
        seen: list[bytes] = []
        eventually(lambda: seen.extend(r.value or b"" for r in consumer.poll(1)) or seen)  # type: ignore[func-returns-value]
        victim.kill()
        assert len(consumer.poll(0.2)) == 0
        victim.start()
        producer.send("t", b"after").result(20)
        eventually(lambda: seen.extend(r.value or b"" for r in consumer.poll(1)) or len(seen) > 1)  # type: ignore[func-returns-value]
        assert seen == [b"before", b"after"]


def send_all(producer: Producer, count: int) -> None:
    for _ in range(count):
        producer.send("t", bytes(1000))


@pytest.mark.behaviour("P2")
def test_a_full_buffer_makes_send_wait_and_then_raise(victim: Victim) -> None:
    producer = Producer(bootstrap_servers=victim.listen, buffer_memory=100_000, max_block_ms=2_000)
    producer.send("t", b"v").result(20)
    victim.kill()
    with pytest.raises(BufferExhaustedError, match=r"max\.block\.ms = 2000: 100000 bytes \(buffer\.memory\)"):
        send_all(producer, 2000)
    producer.close(0)


@pytest.mark.behaviour("P4")
def test_records_not_delivered_in_time_fail_with_the_reason(victim: Victim) -> None:
    settings: dict[str, Any] = {"linger_ms": 0, "request_timeout_ms": 300, "delivery_timeout_ms": 400}
    with Producer(bootstrap_servers=victim.listen, **settings) as producer:
        producer.send("t", b"v").result(20)
        victim.kill()
        future = producer.send("t", b"v")
        with pytest.raises(KafkaTimeoutError, match=r"1 record for t-0 not delivered within .* = 400, .*refused"):
            future.result(20)


def test_process_exit_without_a_broker_reports_the_number_of_lost_records(victim: Victim) -> None:
    code = (
        "import os, sys, ottla.client.producer.sender as sender\n"
        "from ottla import Producer\n"
        "sender.EXIT_TIMEOUT = 0.2; sender.GRACE = 0.1\n"
        f"producer = Producer(bootstrap_servers={victim.listen!r})\n"
        "producer.send('t', b'v').result(20)\n"
        "print('ready', flush=True); sys.stdin.readline()\n"
        "for n in range(7): producer.send('t', b'v')\n"
    )
    pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", code], **pipes) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        victim.kill()
        _, said = process.communicate("go\n", timeout=30)
    assert "closed with undelivered records records=7" in said
    assert "process exit with undelivered records records=7; waiting up to 0.2 s: 127.0.0.1" in said
    assert "Traceback" not in said


def test_a_close_without_waiting_fails_the_remaining_records_and_reports_their_number(
    victim: Victim, caplog: pytest.LogCaptureFixture
) -> None:
    producer = Producer(bootstrap_servers=victim.listen)
    producer.send("t", b"v").result(20)
    victim.kill()
    futures = [producer.send("t", b"v") for _ in range(10)]
    started = time.monotonic()
    with caplog.at_level(logging.ERROR):
        producer.close(0.1)
    assert time.monotonic() - started < 5
    for future in futures:
        assert isinstance(future.exception(0), IllegalStateError)
    assert "closed with undelivered records records=10" in caplog.text
