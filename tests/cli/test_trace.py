"""`ottla trace`: lines where there is no terminal, a picture where there is one."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import uuid
from collections.abc import Iterator

import pytest

from ottla import Admin, NewTopic, Producer
from tests.cli.conftest import ENVIRONMENT, OTTLA, PATIENCE, ottla, start


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
    """What it says up to a line with these words; each line begins with the time."""
    assert process.stdout is not None
    lines: list[str] = []
    for line in process.stdout:
        lines.append(line.partition("  ")[2].rstrip())
        if words in line:
            return lines
    raise AssertionError(f"{words!r} was not said, but {lines}")


def drawn_by(arguments: tuple[str, ...], typed: bytes = b"") -> bytes:
    """What a command draws in a terminal until it ends by itself."""
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
    drawn = b""
    try:
        while chunk := os.read(controller, 65536):
            drawn += chunk
    except OSError:  # the other end is closed
        pass
    os.close(controller)
    assert process.wait(PATIENCE) == 0
    return drawn


def test_a_member_says_how_it_came_into_the_group(tracing: subprocess.Popen[str], filled: str) -> None:
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


def test_every_event_is_told_where_that_is_wanted(address: str, filled: str) -> None:
    told = ottla(
        "trace", "consume", filled, "--from-beginning", "--events", "--seconds", 0.5, "--bootstrap-server", address
    )
    assert (told.status, told.err) == (0, "")
    for words in (
        "fetch sent to node 1: ",
        f" bytes of {filled}-0 from 0",
        f"handed out 10 of {filled}-1 from 0",
    ):
        assert words in told.out


@pytest.mark.behaviour("X1")
def test_a_terminal_gets_a_picture_of_all_parts(address: str, filled: str, group: str) -> None:
    drawn = drawn_by(("trace", "consume", filled, "--group", group, "--seconds", "0.5", "--bootstrap-server", address))
    for part in ("ConsumerNetworkClient", "Fetcher", "ConsumerCoordinator", "HeartbeatThread", "SubscriptionState"):
        assert part.encode() in drawn
    for words in ("in flight", "poll gap", "time line", f"{filled}-1"):
        assert words.encode() in drawn


def test_a_topic_there_is_not_is_said(address: str) -> None:
    told = ottla("trace", "consume", "no-such-topic", "--bootstrap-server", address)
    assert told.status == 1
    assert "topic 'no-such-topic' does not exist at" in told.sentence


def test_a_broker_there_is_not_is_said() -> None:
    told = ottla(
        *("trace", "consume", "t", "--group", "g", "--bootstrap-server", "127.0.0.1:1"),
        *("--set", "default.api.timeout.ms=300"),
    )
    assert told.status == 1
    assert "no Kafka broker answered within 300 ms" in told.sentence


def test_a_producer_s_records_are_told_from_their_queue_to_the_answer(address: str, filled: str) -> None:
    told = ottla("trace", "produce", filled, "--events", "--bootstrap-server", address, stdin="a\nb\n")
    assert (told.status, told.err) == (0, "")
    lines = [line.partition("  ")[2] for line in told.out.splitlines()]
    assert any(line.startswith(f"batch of {filled}-") for line in lines)
    assert any(line.startswith("produce sent to node 1: ") for line in lines)
    assert sum(int(line.split()[0]) for line in lines if " acknowledged after " in line) == 2


def test_what_happens_in_a_producer_is_json_where_that_is_wanted(address: str, filled: str) -> None:
    told = ottla(
        *("trace", "produce", filled, "--json", "--key-separator", ":", "--bootstrap-server", address),
        stdin="k:a\nk:b\n",
    )
    events = [json.loads(line) for line in told.out.splitlines()]
    assert sum(event["facts"]["records"] for event in events if event["event"] == "Acknowledged") == 2
    assert {event["event"] for event in events} <= {
        "Acknowledged",
        "TransactionChanged",
        "CoordinatorAsked",
        "CoordinatorAnswered",
    }


def test_a_line_that_is_no_record_ends_it_with_a_sentence(address: str, filled: str) -> None:
    told = ottla("trace", "produce", filled, "--key-separator", ":", "--bootstrap-server", address, stdin="none\n")
    assert (told.status, told.sentence) == (1, "line 1 of standard input has no key separator ':'")


@pytest.mark.behaviour("X1")
def test_a_terminal_gets_a_picture_of_a_producer(address: str, filled: str) -> None:
    drawn = drawn_by(("trace", "produce", filled, "--bootstrap-server", address), typed=b"a\nb\n\x04")
    for part in ("RecordAccumulator", "Sender", "NetworkClient", "TransactionManager", "2 records acknowledged"):
        assert part.encode() in drawn
