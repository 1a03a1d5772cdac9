"""`ottla groups` with a streams group: a member joins by heartbeats, as Kafka Streams does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ottla import Admin, NewTopic, Producer, TopicPartition
from ottla.broker.embedding.embedded_broker import Broker
from ottla.cli.main import main
from tests.broker.streams.test_streams_groups import SETTINGS, beat, join, push
from tests.broker.wire import Wire

Captured = pytest.CaptureFixture[str]


class Application:
    """A streams group `g` that reads the topic `in` of two partitions; it has committed offset 3 of the second one."""

    def __init__(self, address: str, wire: Wire, captured: Captured) -> None:
        self._address = address
        self._wire = wire
        self._captured = captured
        self.notices = ""
        """The standard error of the last command."""

    def run(self, *words: str, status: int = 0) -> str:
        """Run `ottla groups …` and return its standard output, or its error."""
        self._captured.readouterr()
        assert main(["groups", *words, "--bootstrap-server", self._address]) == status
        out, self.notices = self._captured.readouterr()
        return out if status == 0 else self.notices

    def rows(self, *words: str) -> list[list[str]]:
        return [line.split() for line in self.run(*words).splitlines()]

    def push_topology(self) -> None:
        assert push(self._wire).error_code == 0

    def leave(self) -> None:
        beat(self._wire, epoch=-1)


@pytest.fixture
def application(tmp_path: Path, capsys: Captured) -> Iterator[Application]:
    settings: dict[str, Any] = {**SETTINGS, "group_streams_topology_description_plugin_class": "memory"}
    with Broker(tmp_path, **settings) as broker, Wire(broker.bootstrap_servers) as wire:
        address = broker.bootstrap_servers
        with Admin(bootstrap_servers=address) as admin, Producer(bootstrap_servers=address) as producer:
            admin.create_topics([NewTopic("in", 2)])
            for number in range(10):
                producer.send("in", b"%d" % number, partition=number % 2)
            producer.flush()
            admin.alter_streams_group_offsets("g", {TopicPartition("in", 1): 3})
        join(wire)
        yield Application(address, wire, capsys)


def test_it_is_listed_on_request(application: Application) -> None:
    assert application.run("list") == ""
    assert application.notices == "not shown are groups of other kinds: 1 streams (--type lists share and streams)\n"
    assert application.rows("list", "--type", "streams", "--verbose")[1:] == [["g", "Streams", "Stable"]]


def test_each_partition_is_described_with_its_lag_and_its_task(application: Application) -> None:
    header, *rows = application.rows("describe", "g")
    assert header == ["GROUP", "TOPIC", "PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG", "TASK", "MEMBER", "HOST", "CLIENT-ID"]  # fmt: skip
    assert [row[1:8] for row in rows] == [
        ["in", "0", "-", "5", "-", "0_0", "a"],
        ["in", "1", "3", "5", "2", "0_1", "a"],
        ["rep", "0", "-", "0", "-", "1_0", "a"],
        ["rep", "1", "-", "0", "-", "1_1", "a"],
    ]


def test_members_are_described_with_their_tasks_and_the_group_with_its_state(application: Application) -> None:
    assert "0:0,1; 1:0,1" in application.run("describe", "g", "--members")
    assert "Stable" in application.run("describe", "g", "--state", "--verbose")


def test_offsets_are_described_reset_and_deleted_after_the_last_member_has_left(application: Application) -> None:
    refused = application.run("reset-offsets", "g", "--topic", "in", "--to-earliest", "--execute", status=1)
    assert "group 'g' is Stable" in refused
    application.leave()

    application.run("reset-offsets", "g", "--topic", "in", "--to-offset", "1", "--execute")
    assert [row[1:7] for row in application.rows("describe", "g")[1:]] == [
        ["in", "0", "1", "5", "4", "0_0"],
        ["in", "1", "1", "5", "4", "0_1"],
    ]
    application.run("delete-offsets", "g", "--topic", "in:0", "--yes")
    assert [row[1:3] for row in application.rows("describe", "g")[1:]] == [["in", "1"]]
    application.run("delete", "g", "--yes")
    assert "there is no group 'g'" in application.run("describe", "g", status=1)


def test_the_topology_is_printed_as_by_kafkas_tool_once_it_is_stored(application: Application) -> None:
    assert "no topology of group 'g' is stored" in application.run("describe", "g", "--topology", status=1)
    application.push_topology()
    assert application.run("describe", "g", "--topology").splitlines() == [
        "Topologies:",
        "   Sub-topology: 0",
        "    Source: source (topics: [in])",
        "      --> count",
        "    Processor: count (stores: [counts])",
        "      --> sink",
        "      <-- source",
        "    Sink: sink (topic: out)",
        "      <-- count",
        "   Global store: table",
        "    Source: all (topics: [everything])",
        "      --> keep",
        "    Processor: keep (stores: [table])",
        "      --> none",
        "      <-- all",
    ]
    assert "exclude each other" in application.run("describe", "g", "--topology", "--state", status=2)
