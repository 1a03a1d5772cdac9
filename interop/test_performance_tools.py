"""Kafka's performance and verification tools run at our broker. Their measurements are not checked."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from interop.conftest import NewTopicName
from interop.kafka_tools import Tools, tool
from ottla import Broker
from tests.broker.wire import Wire, produce
from tests.storage.producing import produced

COUNT = 20_000


@pytest.fixture(scope="module")
def tools() -> Iterator[Tools]:
    with Tools() as tools:
        yield tools


def test_the_performance_tools_consume_the_records_that_they_produce(
    tools: Tools, ottla_broker: str, fresh_topic: NewTopicName
) -> None:
    topic = fresh_topic(ottla_broker)
    at = ("--bootstrap-server", ottla_broker)
    load = ("--topic", topic, "--num-records", COUNT, "--record-size", 100, "--throughput", -1)
    plain = tools.run("ProducerPerformance", *load, *at)
    assert f"{COUNT} records sent" in plain.text, plain
    transactional = ("--transactional-id", "perf", "--transaction-duration-ms", 20)
    within = tools.run("ProducerPerformance", *load, *at, *transactional)
    assert f"{COUNT} records sent" in within.text, within
    read = tools.run("ConsumerPerformance", *at, "--topic", topic, "--num-records", 2 * COUNT, "--timeout", 20_000)
    counted = [line.split(", ")[4] for line in read.text.splitlines() if re.match(r"\d{4}-", line)]
    assert sum(map(int, counted)) >= 2 * COUNT, read


def test_the_latency_tool_receives_the_records_that_it_sends(
    tools: Tools, ottla_broker: str, fresh_topic: NewTopicName
) -> None:
    words = ("--topic", fresh_topic(ottla_broker), "--num-records", 200, "--producer-acks", "all", "--record-size", 50)
    said = tools.run("EndToEndLatency", "--bootstrap-server", ottla_broker, *words)
    assert said.status == 0, said
    assert "Percentiles: 50th = " in said.text


def test_the_verifiable_consumer_reads_each_acknowledged_record_of_the_verifiable_producer(
    ottla_broker: str, fresh_topic: NewTopicName
) -> None:
    topic = fresh_topic(ottla_broker)
    at = ("--bootstrap-server", ottla_broker, "--topic", topic, "--max-messages", 1000)
    sent = events(tool("VerifiableProducer", *at, "--value-prefix", 7), "producer_send_success")
    assert [event["value"] for event in sent] == [f"7.{number}" for number in range(1000)]
    group = ("--group-id", "verifiable", "--reset-policy", "earliest")
    output = tool("VerifiableConsumer", *at, *group)
    assert sum(event["count"] for event in events(output, "records_consumed")) == 1000
    assert all(event["success"] for event in events(output, "offsets_committed"))


def events(text: str, name: str) -> list[dict[str, Any]]:
    """Return the JSON lines with that name."""
    found = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    return [event for event in found if event["name"] == name]


def test_transactions_are_listed_and_described(tools: Tools, ottla_broker: str, fresh_topic: NewTopicName) -> None:
    topic = fresh_topic(ottla_broker)
    at = ("--bootstrap-server", ottla_broker)
    load = (
        "--topic",
        topic,
        "--num-records",
        10,
        "--record-size",
        10,
        "--throughput",
        -1,
        "--transactional-id",
        "told",
    )
    tools.run("ProducerPerformance", *load, *at)
    transactions = "TransactionsCommand"
    assert re.search(r"^told\s+1\s+\d+\s+CompleteCommit", tools.run(transactions, *at, "list").text, re.MULTILINE)
    described = tools.run(transactions, *at, "describe", "--transactional-id", "told").text
    assert re.search(r"^1\s+told\s+\d+\s+\d+\s+CompleteCommit", described, re.MULTILINE), described


def test_a_hanging_transaction_is_found_and_aborted(tools: Tools, tmp_path: Path) -> None:
    with (
        Broker(tmp_path, transaction_partition_verification_enable=False) as broker,
        Wire(broker.bootstrap_servers) as wire,
    ):
        wire.create("t")
        request = produce("t", produced(7, 0, 3, transactional=True))
        request.transactional_id = "hanging"
        wire.ask(request, 9)
        at = ("--bootstrap-server", broker.bootstrap_servers)
        find = ("TransactionsCommand", *at, "find-hanging", "--broker-id", 1, "--max-transaction-timeout", 1)
        found = tools.run(*find).text
        assert re.search(r"^t\s+0\s+7\s+0\s+-1\s+0\s", found, re.MULTILINE), found
        where = ("--topic", "t", "--partition", 0, "--start-offset", 0)
        assert tools.run("TransactionsCommand", *at, "abort", *where).status == 0
        assert len(tools.run(*find).text.splitlines()) == 1
