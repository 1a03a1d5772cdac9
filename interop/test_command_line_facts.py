"""What `ottla` tells of a cluster is what Kafka's own tools tell of it, at our broker and at Apache Kafka.

Groups and transactions are in `test_group_tools.py`, rules in `test_access_tools.py`.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from interop.cluster import wait_for
from interop.kafka_tools import Tools
from ottla import Admin, NewTopic, Producer
from ottla.cli.main import main
from ottla.coordination.controller.first_levels import STEPS

TOPICS, CONFIGS = "TopicCommand", "kafka.admin.ConfigCommand"
LEVELS = {**STEPS, "3.3-IV3": 7}
"""What Kafka's tool names metadata.version."""
CONFIG = re.compile(r"^  (\S+?)=(.*?) sensitive=(\w+) synonyms=", re.MULTILINE)
QUOTAS = re.compile(r"^Quota configs for client-id '(\S+)' are (.*)$", re.MULTILINE)


@pytest.fixture(scope="module")
def tools() -> Iterator[Tools]:
    with Tools() as tools:
        yield tools


@pytest.fixture(scope="module")
def topic(any_broker: str) -> str:
    """A topic of three partitions with something set, and records in two of them."""
    name = f"facts-{uuid.uuid4().hex[:8]}"
    with Admin(bootstrap_servers=any_broker) as admin, Producer(bootstrap_servers=any_broker) as producer:
        admin.create_topics(
            [NewTopic(name, 3, configs={"retention.ms": "3600000", "cleanup.policy": "compact,delete"})]
        )
        wait_for(lambda: name in admin.list_topics(), "the topic is there")
        for n in range(20):
            producer.send(name, b"v", key=b"k", partition=n % 2)
    return name


class Both:
    """The same question asked by ours and by theirs."""

    def __init__(self, tools: Tools, address: str, capsys: pytest.CaptureFixture[str]) -> None:
        self._tools, self._at, self._capsys = tools, ("--bootstrap-server", address), capsys

    def ours(self, *words: str) -> list[dict[str, Any]]:
        """The rows of ours."""
        assert main([*words, "--json", *self._at]) == 0
        rows: list[dict[str, Any]] = json.loads(self._capsys.readouterr().out)
        return rows

    def theirs(self, name: str, *words: str) -> str:
        said = self._tools.run(name, *self._at, *words)
        assert said.status == 0, said.text
        return said.text


@pytest.fixture
def both(tools: Tools, any_broker: str, capsys: pytest.CaptureFixture[str]) -> Both:
    return Both(tools, any_broker, capsys)


def numbers(text: str) -> list[int]:
    return [int(each) for each in text.split(",") if each]


def test_the_same_topics_are_listed(both: Both, topic: str) -> None:
    mine = [row["topic"] for row in both.ours("topics", "list", "--internal")]
    assert topic in mine
    assert sorted(mine) == sorted(both.theirs(TOPICS, "--list").split())


def test_the_same_is_told_of_a_topic(both: Both, topic: str) -> None:
    told = both.theirs(TOPICS, "--describe", "--topic", topic)
    (topic_id,) = re.findall(r"TopicId: (\S+)", told)
    found = re.findall(r"Partition: (\d+)\s+Leader: (\d+)\s+Replicas: (\S*)\s+Isr: (\S*)", told)
    assert [
        (row["topic_id"], row["partition"], row["leader"], row["replicas"], row["in_sync"])
        for row in both.ours("topics", "describe", topic)
    ] == [(topic_id, int(p), int(leader), numbers(replicas), numbers(isr)) for p, leader, replicas, isr in found]


@pytest.mark.parametrize("everything", [(), ("--all",)], ids=["set", "all"])
@pytest.mark.parametrize("kind", ["topics", "brokers"])
def test_the_same_configs_are_told(both: Both, topic: str, kind: str, everything: tuple[str, ...]) -> None:
    named = ("--entity-type", kind, "--entity-name", topic if kind == "topics" else "1")
    told = CONFIG.findall(both.theirs(CONFIGS, "--describe", *named, *everything))
    theirs = {name: None if value == "null" or hidden == "true" else value for name, value, hidden in told}
    mine = {row["config"]: row["value"] for row in both.ours("configs", "describe", *named, *everything)}
    assert {name: None if value == "(hidden)" else value for name, value in mine.items()} == theirs
    assert bool(mine) == bool(everything or kind == "topics")


def test_the_same_limits_are_told(both: Both, any_broker: str) -> None:
    client = f"client-{uuid.uuid4().hex[:8]}"
    named = ("--entity-type", "clients", "--entity-name", client)
    limits = "producer_byte_rate=1000,request_percentage=12.5"
    assert main(["quotas", "alter", *named, "--add-config", limits, "--bootstrap-server", any_broker]) == 0
    wait_for(lambda: both.ours("quotas", "describe", *named) != [], "the limits are there")
    ((who, told),) = QUOTAS.findall(both.theirs(CONFIGS, "--describe", *named))
    pairs = (pair.split("=") for pair in told.split(", "))
    assert [
        (row["client_id"], row["quota"], row["value"]) for row in both.ours("quotas", "describe", *named)
    ] == sorted((who, name, float(value)) for name, value in pairs)


def test_the_same_copies_are_on_the_disks(both: Both, topic: str) -> None:
    told = both.theirs("LogDirsCommand", "--describe", "--topic-list", topic)
    (found,) = (json.loads(line) for line in told.splitlines() if line.startswith("{"))
    theirs = [
        (copy["partition"], broker["broker"], copy["size"], copy["offsetLag"], copy["isFuture"], directory["logDir"])
        for broker in found["brokers"]
        for directory in broker["logDirs"]
        for copy in directory["partitions"]
    ]
    mine = both.ours("cluster", "log-dirs", "--topic", topic)
    assert len(mine) == 3
    rows = [(f"{row.pop('topic')}-{row.pop('partition')}", *row.values()) for row in mine]
    assert sorted(rows) == sorted(theirs)


def test_the_same_features_run(both: Both) -> None:
    told = both.theirs("FeatureCommand", "describe")
    fields = ("Feature", "SupportedMinVersion", "SupportedMaxVersion", "FinalizedVersionLevel", "Epoch")
    pattern = r"\s+".join(rf"{field}: (\S+)" for field in fields)
    theirs = {name: [level_of(text) for text in rest] for name, *rest in re.findall(pattern, told)}
    mine = {name: rest for name, *rest in (row.values() for row in both.ours("cluster", "features"))}
    assert mine.keys() == theirs.keys() >= {"metadata.version", "kraft.version"}
    for name, (*levels, epoch) in mine.items():
        assert levels == theirs[name][:-1]
        assert 0 <= theirs[name][-1] - epoch < 1000  # Apache Kafka's goes on with its metadata's log


def level_of(text: str) -> int:
    """A number, or Kafka's name of a metadata.version."""
    return int(text) if text.isdecimal() else LEVELS[text]


def test_the_same_vote_on_the_metadata(both: Both) -> None:
    before = both.ours("cluster", "quorum")
    heading, *lines = both.theirs("MetadataQuorumCommand", "describe", "--replication").splitlines()
    after = both.ours("cluster", "quorum")
    theirs = [dict(zip(heading.split(), line.split(), strict=False)) for line in lines]
    assert len(before) == len(theirs) == len(after) == 1
    for first, told, last in zip(before, theirs, after, strict=True):
        assert (first["node_id"], first["directory_id"], first["status"]) == (
            int(told["NodeId"]),
            told["DirectoryId"],
            told["Status"],
        )
        assert first["log_end_offset"] <= int(told["LogEndOffset"]) <= last["log_end_offset"]
        assert first["lag"] == int(told["Lag"]) == 0
