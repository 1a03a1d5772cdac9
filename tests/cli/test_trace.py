"""`ottla trace`: lines without a terminal, a picture in a terminal."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from ottla import Admin, Broker, Consumer, NewTopic, Producer, TopicPartition
from tests.cli.conftest import ENVIRONMENT, OTTLA, PATIENCE, ottla, start
from tests.cli.terminal import is_readable


@pytest.fixture
def filled(address: str, topic: str) -> str:
    """A topic of two partitions with twenty records."""
    with Admin(bootstrap_servers=address) as admin, Producer(bootstrap_servers=address) as producer:
        admin.create_topics([NewTopic(topic, 2)])
        for n in range(20):
            producer.send(topic, b"v", partition=n % 2)
    return topic


@pytest.fixture
def group() -> str:
    return f"group-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def tracing(address: str, filled: str, group: str) -> Iterator[subprocess.Popen[str]]:
    """A member of the group, traced without a terminal."""
    process = start("trace", "consume", filled, "--group", group, "--from-beginning", "--bootstrap-server", address)
    yield process
    process.kill()
    process.communicate()


def lines_until(process: subprocess.Popen[str], words: str) -> list[str]:
    """Return the lines of a process up to one with these words, without the time at their beginning."""
    assert process.stdout is not None
    lines: list[str] = []
    for line in process.stdout:
        lines.append(line.partition("  ")[2].rstrip())
        if words in line:
            return lines
    raise AssertionError(f"{words!r} was not said, but {lines}")


@contextmanager
def drawing(arguments: tuple[str, ...], typed: bytes = b"") -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """Yield a command in a terminal, and the controlling end of the terminal."""
    controller, terminal = pty.openpty()
    process = subprocess.Popen(
        [*OTTLA, *arguments],
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        env={**ENVIRONMENT, "TERM": "xterm", "COLUMNS": "120", "LINES": "50"},
    )
    os.close(terminal)
    os.write(controller, typed)
    try:
        yield process, controller
    finally:
        process.kill()
        process.wait()
        os.close(controller)


def drawn_by(arguments: tuple[str, ...], typed: bytes = b"") -> bytes:
    """Return the terminal output of a command that ends by itself."""
    drawn = b""
    with drawing(arguments, typed) as (process, controller):
        try:
            while chunk := os.read(controller, 65536):
                drawn += chunk
        except OSError:  # the other end is closed
            pass
        assert process.wait(PATIENCE) == 0
    return drawn


def draws(arguments: tuple[str, ...], *words: str) -> None:
    """Assert that a running command draws all of these words, and that Ctrl-C ends it."""
    drawn, deadline = b"", time.monotonic() + PATIENCE
    with drawing(arguments) as (process, controller):
        while missing := [word for word in words if word.encode() not in drawn]:
            assert is_readable(controller, deadline - time.monotonic()), f"{missing} were not drawn, but {drawn!r}"
            drawn += os.read(controller, 65536)
        process.send_signal(signal.SIGINT)
        while process.poll() is None:  # what it draws to its end has to be taken
            if is_readable(controller, 0.05):
                with suppress(OSError):
                    os.read(controller, 65536)
        assert process.returncode == 130


def test_the_trace_of_a_member_shows_its_join(tracing: subprocess.Popen[str], filled: str) -> None:
    lines = lines_until(tracing, "assigned")
    assert lines[0] == "rebalance started: this member is new"
    assert lines[-3].startswith("joined generation 1 as consumer-")
    assert lines[-3].endswith(", leading (range)")
    assert lines[-2:] == ["synced generation 1", f"assigned {filled} 0,1, new: all"]


def test_ctrl_c_leaves_the_group_long_before_its_session_is_over(
    tracing: subprocess.Popen[str], address: str, group: str, filled: str
) -> None:
    lines_until(tracing, "assigned")
    tracing.send_signal(signal.SIGINT)
    _, err = tracing.communicate(timeout=PATIENCE)
    assert (tracing.returncode, err) == (130, "")
    with Admin(bootstrap_servers=address) as admin:
        assert admin.describe_consumer_groups([group])[group].members == ()


def test_every_event_is_printed_on_request(address: str, filled: str) -> None:
    process = start("trace", "consume", filled, "--from-beginning", "--events", "--bootstrap-server", address)
    try:
        lines = lines_until(process, f"returned 10 of {filled}-1 from 0")
    finally:
        process.kill()
        process.communicate()
    assert any(line.startswith("fetch sent to node 1: ") for line in lines)
    assert any(f" bytes of {filled}-1 from 0" in line for line in lines)


@pytest.mark.behaviour("X1")
def test_a_terminal_gets_a_picture_of_all_parts(address: str, filled: str, group: str) -> None:
    draws(
        ("trace", "consume", filled, "--group", group, "--bootstrap-server", address),
        *("ConsumerNetworkClient", "Fetcher", "ConsumerCoordinator", "HeartbeatThread", "SubscriptionState"),
        *("in flight", "poll gap", "time line", f"{filled}-1"),
    )


def test_a_missing_topic_is_reported(address: str) -> None:
    result = ottla("trace", "consume", "no-such-topic", "--bootstrap-server", address)
    assert result.status == 1
    assert "topic 'no-such-topic' does not exist at" in result.sentence


def test_a_missing_broker_is_reported() -> None:
    result = ottla(
        *("trace", "consume", "t", "--group", "g", "--bootstrap-server", "127.0.0.1:1"),
        *("--set", "default.api.timeout.ms=300"),
    )
    assert result.status == 1
    assert "no Kafka broker answered within 300 ms" in result.sentence


def test_the_records_of_a_producer_are_traced_from_the_queue_to_the_response(address: str, filled: str) -> None:
    result = ottla("trace", "produce", filled, "--events", "--bootstrap-server", address, stdin="a\nb\n")
    assert (result.status, result.err) == (0, "")
    lines = [line.partition("  ")[2] for line in result.out.splitlines()]
    assert any(line.startswith(f"batch of {filled}-") for line in lines)
    assert any(line.startswith("produce sent to node 1: ") for line in lines)
    assert sum(int(line.split()[0]) for line in lines if " acknowledged after " in line) == 2


def test_events_of_a_producer_are_json_on_request(address: str, filled: str) -> None:
    result = ottla(
        *("trace", "produce", filled, "--json", "--key-separator", ":", "--bootstrap-server", address),
        stdin="k:a\nk:b\n",
    )
    events = [json.loads(line) for line in result.out.splitlines()]
    assert sum(event["facts"]["records"] for event in events if event["event"] == "Acknowledged") == 2
    assert {event["event"] for event in events} <= {
        "Acknowledged",
        "TransactionChanged",
        "CoordinatorAsked",
        "CoordinatorAnswered",
    }


def test_a_line_that_is_no_record_ends_the_trace_with_an_error(address: str, filled: str) -> None:
    result = ottla("trace", "produce", filled, "--key-separator", ":", "--bootstrap-server", address, stdin="none\n")
    assert (result.status, result.sentence) == (1, "line 1 of standard input has no key separator ':'")


@pytest.mark.behaviour("X1")
def test_a_terminal_gets_a_picture_of_a_producer(address: str, filled: str) -> None:
    drawn = drawn_by(("trace", "produce", filled, "--bootstrap-server", address), typed=b"a\nb\n\x04")
    for part in ("RecordAccumulator", "Sender", "NetworkClient", "TransactionManager", "2 records acknowledged"):
        assert part.encode() in drawn


@pytest.fixture
def traced_broker(short_path: Path) -> Iterator[Broker]:
    """A broker with a trace socket and a topic."""
    with Broker(trace_folder=str(short_path)) as broker, Producer(broker.client_settings()) as producer:
        producer.send("orders", b"v").result(PATIENCE)
        yield broker


def test_a_terminal_gets_a_picture_of_a_broker(traced_broker: Broker, short_path: Path) -> None:
    draws(
        ("trace", "broker", "--trace", str(short_path)),
        *("GroupCoordinator", "Purgatory", "LogManager", "ReplicaManager", "LogCleaner", "Requests", "time line"),
        *("orders-0  0 to 1, HW 1, 1 segment", "connections"),
    )


def test_each_event_of_a_broker_is_a_line(traced_broker: Broker, short_path: Path) -> None:
    process = start("trace", "broker", "1", "--json", "--events", "--trace", str(short_path))
    try:
        with Consumer(traced_broker.client_settings(), client_id="reader") as consumer:
            consumer.assign([TopicPartition("orders", 0)])
            assert process.stdout is not None
            deadline = time.monotonic() + PATIENCE
            while not is_readable(process.stdout.fileno(), 0):  # its fetches wait again and again
                consumer.poll(0.1)
                assert time.monotonic() < deadline
            event = json.loads(process.stdout.readline())
    finally:
        process.kill()
        process.communicate()
    assert event["event"] in ("WaitBegun", "WaitOver")
    assert (event["facts"]["api"], event["facts"]["client_id"]) == ("Fetch", "reader")


def test_a_broker_that_denies_tracing_is_reported(short_path: Path) -> None:
    result = ottla("trace", "broker", "--trace", short_path)
    assert result.status == 1
    assert f"start one with: ottla broker --trace {short_path}" in result.sentence


def test_a_missing_broker_id_is_reported(traced_broker: Broker, short_path: Path) -> None:
    result = ottla("trace", "broker", "7", "--trace", short_path)
    assert result.status == 1
    assert result.sentence.endswith("; there are 1")
