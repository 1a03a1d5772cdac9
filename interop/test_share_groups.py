"""Apache Kafka's tools consume with share groups of our broker, and administer them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from interop.kafka_tools import Tools
from ottla import Admin, NewTopic, Producer
from ottla.broker.embedding.embedded_broker import Broker

GROUP = "workers"
RECORDS = 300


@pytest.fixture(scope="module")
def tools() -> Iterator[Tools]:
    with Tools() as tools:
        yield tools


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[str]:
    """A broker with a topic of two partitions and a share group that starts at its first record."""
    with Broker(tmp_path, process=True) as broker:
        address = broker.bootstrap_servers
        with Admin(bootstrap_servers=address) as admin, Producer(bootstrap_servers=address) as producer:
            admin.create_topics([NewTopic("jobs", 2)])
            for number in range(RECORDS):
                producer.send("jobs", b"job-%d" % number)
        yield address


def run(tools: Tools, name: str, address: str, *words: object) -> str:
    result = tools.run(name, "--bootstrap-server", address, *words)
    assert result.status == 0, result.text
    return result.text


def consume(tools: Tools, address: str, count: int, *words: object) -> list[str]:
    text = run(
        tools,
        "consumer.ConsoleShareConsumer",
        address,
        *("--topic", "jobs", "--group", GROUP, "--max-messages", count, "--timeout-ms", 60_000),
        *words,
    )
    return [line for line in text.splitlines() if line.startswith("job-")]


def test_the_console_consumers_of_a_share_group_read_each_record_once(tools: Tools, broker: str) -> None:
    config = ("--alter", "--group", GROUP, "--add-config", "share.auto.offset.reset=earliest")
    run(tools, "org.apache.kafka.tools.ConfigCommand", broker, *config)
    first, second = consume(tools, broker, 100), consume(tools, broker, 200)
    assert len(first) == 100
    assert sorted(first + second) == sorted(f"job-{number}" for number in range(RECORDS))


def test_the_share_group_tool_describes_resets_and_deletes(tools: Tools, broker: str) -> None:
    config = ("--alter", "--group", GROUP, "--add-config", "share.auto.offset.reset=earliest")
    run(tools, "org.apache.kafka.tools.ConfigCommand", broker, *config)
    consume(tools, broker, RECORDS)
    command = "consumer.group.ShareGroupCommand"
    assert GROUP in run(tools, command, broker, "--list")
    described = run(tools, command, broker, "--describe", "--group", GROUP, "--offsets")
    rows = [line.split() for line in described.splitlines() if line.startswith(GROUP)]
    assert [(row[1], row[2]) for row in sorted(rows)] == [("jobs", "0"), ("jobs", "1")]
    assert "Empty" in run(tools, command, broker, "--describe", "--group", GROUP, "--state")
    reset = ("--reset-offsets", "--group", GROUP, "--topic", "jobs", "--to-earliest", "--execute")
    run(tools, command, broker, *reset)
    assert len(consume(tools, broker, RECORDS)) == RECORDS
    assert "success" in run(tools, command, broker, "--delete-offsets", "--group", GROUP, "--topic", "jobs").lower()
    run(tools, command, broker, "--delete", "--group", GROUP)
    assert GROUP not in run(tools, command, broker, "--list")


def test_rejected_records_are_delivered_no_more(tools: Tools, broker: str) -> None:
    config = ("--alter", "--group", GROUP, "--add-config", "share.auto.offset.reset=earliest")
    run(tools, "org.apache.kafka.tools.ConfigCommand", broker, *config)
    rejected = consume(tools, broker, 50, "--reject")
    rest = consume(tools, broker, RECORDS - 50)
    assert not set(rejected) & set(rest)


def test_the_level_of_share_groups_is_described_and_changed(tools: Tools, broker: str) -> None:
    assert "share.version" in run(tools, "FeatureCommand", broker, "describe")
    raised = tools.run("FeatureCommand", "--bootstrap-server", broker, "upgrade", "--feature", "share.version=2")
    assert raised.status == 0, raised.text
    lowered = tools.run("FeatureCommand", "--bootstrap-server", broker, "downgrade", "--feature", "share.version=1")
    assert lowered.status == 0, lowered.text
