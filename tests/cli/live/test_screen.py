"""The window of a view in a real terminal: its keys, and the restored terminal at the end."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from ottla import Admin, Broker, Consumer, NewTopic, TopicPartition
from tests.cli.terminal import Terminal

ALTERNATE, NORMAL = b"\x1b[?1049h", b"\x1b[?1049l"


@pytest.fixture
def wide(address: str, topic: str) -> str:
    """A topic of more partitions than a terminal has lines."""
    with Admin(bootstrap_servers=address) as admin:
        admin.create_topics([NewTopic(topic, 40)])
    return topic


@pytest.mark.behaviour("X1")
def test_all_of_a_consumer_is_seen_at_80_by_24_by_scrolling(address: str, wide: str) -> None:
    with Terminal("trace", "consume", wide, "--bootstrap-server", address) as terminal:
        terminal.shows(f"{wide}-0")
        terminal.type(b"m\t")
        terminal.shows("/48")  # lines of the picture, with all partitions
        terminal.type(b"\x1b[F")
        terminal.shows(f"{wide}-39")
        terminal.type(b"?")
        terminal.shows("PgUp PgDn")
        terminal.type(b"\x1bp")
        terminal.shows("PAUSED")
        terminal.type(b"q")
        assert terminal.ends() == 0
        assert terminal.modes == terminal.modes_before
        assert terminal.raw.count(ALTERNATE) == terminal.raw.count(NORMAL) == 1
        assert (
            "ConsumerNetworkClient" in terminal.raw[terminal.raw.index(NORMAL) :].decode()
        )  # what was seen last stays


def test_keys_come_from_the_terminal_where_standard_input_has_records(address: str, wide: str) -> None:
    reader, writer = os.pipe()
    try:
        os.write(writer, b"a\nb\n")
        with Terminal("trace", "produce", wide, "--bootstrap-server", address, stdin=reader) as terminal:
            terminal.shows("2 records acknowledged")
            terminal.type(b"q")
            assert terminal.ends() == 0
            assert terminal.modes == terminal.modes_before
    finally:
        os.close(reader)
        os.close(writer)


def test_records_can_be_typed_below_the_picture(address: str, wide: str) -> None:
    with Terminal("trace", "produce", wide, "--bootstrap-server", address) as terminal:
        terminal.shows("0 records acknowledged")
        terminal.type(b"q\n")
        terminal.shows("1 records acknowledged")
        terminal.type(b"\x04")
        assert terminal.ends() == 0


def test_q_ends_a_view_during_a_long_wait(address: str, wide: str) -> None:
    group = f"group-{wide}"
    with Consumer(bootstrap_servers=address, group_id=group) as consumer:
        consumer.commit({TopicPartition(wide, 0): 0})
    with Terminal("groups", "watch", group, "--interval", "1000", "--bootstrap-server", address) as terminal:
        terminal.shows("0 members")
        terminal.type(b"q")
        assert terminal.ends() == 0


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 130)])
def test_a_signal_ends_the_view_and_restores_the_terminal(
    short_path: Path, number: signal.Signals, status: int
) -> None:
    with Broker(trace_folder=str(short_path)), Terminal("trace", "broker", "--trace", str(short_path)) as terminal:
        terminal.shows("LogManager")
        terminal.signal(number)
        assert terminal.ends() == status
        assert terminal.modes == terminal.modes_before
        assert terminal.raw.count(ALTERNATE) == terminal.raw.count(NORMAL) == 1
