"""`kafka-streams-groups` prints the same about a word count on our broker as on Apache Kafka, its topology included (KIP-1331)."""

from __future__ import annotations

import re
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from interop.kafka_tools import Tools
from interop.streams_application import GROUP, LINES, TOTALS, instance, read_totals, send_words
from ottla import Admin, Broker, Consumer, NewTopic, Producer
from ottla.protocol.messages.streams_group_describe import StreamsGroupDescribeRequest
from rivals import apache_kafka as rival
from rivals.kafka_cluster import wait_for
from tests.broker.wire import Wire
from tests.cli.conftest import ottla

APACHE, OURS = "apache", "ottla"
SETTINGS = {
    "group.streams.topology.description.plugin.class": "org.apache.kafka.server.streams.InMemoryTopologyDescriptionPlugin",
    "group.streams.initial.rebalance.delay.ms": "0",
}
VIEWS = {
    "offsets": ("--describe",),
    "offsets, verbose": ("--describe", "--verbose"),
    "members": ("--describe", "--members"),
    "members, verbose": ("--describe", "--members", "--verbose"),
    "state": ("--describe", "--state"),
    "state, verbose": ("--describe", "--state", "--verbose"),
    "topology": ("--describe", "--topology"),
}
WORDS = [f"w{number % 7}" for number in range(100)]
AVAILABLE = 3
OWN_OF_A_RUN = (
    (re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|\b[A-Za-z0-9_-]{22}\b"), "ID"),
    (re.compile(r"\d+\.\d+\.\d+\.\d+:\d+ +\(\d+\)|\S+:\d{4,5} +\(\d+\)"), "COORDINATOR"),
    (re.compile(r" +"), " "),
    (re.compile(rf"^({GROUP} \S+ \d+) \d+ (\S+) \d+ (\d+)$", re.MULTILINE), r"\1 OFFSET \2 OFFSET \3"),
)
"""Values that differ between two runs: ids of members and processes, addresses, and offsets, which depend on the number of transactions.
Columns have the widths of their values."""

Printed = dict[str, str]


def normalize(text: str) -> str:
    text = "\n".join(sorted(line.strip() for line in text.splitlines() if line.strip()))
    for pattern, general in OWN_OF_A_RUN:
        text = pattern.sub(general, text)
    return text


def describe_word_count(address: str, tools: Tools, folder: Path) -> Printed:
    """Run a word count until its totals are right, and return what the tool prints in each view."""
    settings = {"bootstrap.servers": address}
    with Admin(settings) as admin, Producer(settings) as producer, ExitStack() as undo:
        admin.create_topics([NewTopic(LINES, 2), NewTopic(TOTALS, 1)])
        undo.enter_context(instance(address, folder))
        reading = {"group.id": "r", "auto.offset.reset": "earliest", "isolation.level": "read_committed"}
        consumer = undo.enter_context(Consumer(settings | reading))
        consumer.subscribe([TOTALS])
        send_words(producer, WORDS)
        read_totals(consumer, {}, Counter(WORDS))
        wire = undo.enter_context(Wire(address))

        def is_described() -> bool:
            (group,) = wire.ask(StreamsGroupDescribeRequest([GROUP], False, True), 1).groups
            return bool(group.topology_description_status == AVAILABLE and group.group_state == "Stable")

        wait_for(is_described, "the description is stored, and the group is stable")
        printed = {}
        for view, words in VIEWS.items():
            command = ("streams.StreamsGroupCommand", "--bootstrap-server", address, "--group", GROUP, *words)
            printed[view] = tools.run(*command).text
        printed["our command"] = ottla("groups", "describe", GROUP, "--topology", "--bootstrap-server", address).out
        return printed


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Printed]:
    rival.fetch()
    folder = tmp_path_factory.mktemp("streams")
    ours: dict[str, Any] = {name.replace(".", "_"): value for name, value in SETTINGS.items()}
    with Tools() as tools:
        with rival.apache_kafka(SETTINGS) as kafka:
            of_kafka = describe_word_count(kafka.bootstrap_servers, tools, folder / APACHE)
        with Broker(folder / "data", process=True, **ours) as broker:
            of_ours = describe_word_count(broker.bootstrap_servers, tools, folder / OURS)
    return {APACHE: of_kafka, OURS: of_ours}


@pytest.mark.parametrize("view", VIEWS)
def test_the_tool_prints_the_same_of_both_brokers(printed: dict[str, Printed], view: str) -> None:
    assert normalize(printed[OURS][view]) == normalize(printed[APACHE][view])


def test_the_topology_has_the_nodes_of_the_application(printed: dict[str, Printed]) -> None:
    text = printed[OURS]["topology"]
    assert f"topics: [{LINES}]" in text
    assert f"topic: {TOTALS}" in text
    assert "stores: [counts]" in text


@pytest.mark.parametrize("broker", [APACHE, OURS])
def test_our_command_prints_the_topology_as_kafkas_tool_does(printed: dict[str, Printed], broker: str) -> None:
    assert printed[broker]["our command"].split() == printed[broker]["topology"].split()
