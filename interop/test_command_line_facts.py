"""`ottla` prints the same facts about a cluster as Kafka's own tools, at our broker and at Apache Kafka.

Groups and transactions are in `test_group_tools.py`, rules in `test_access_tools.py`.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import pytest

from interop.kafka_tools import Tools, tool
from ottla import Admin, NewTopic, Producer
from ottla.cli.main import main
from ottla.coordination.controller.initial_levels import METADATA_VERSIONS
from rivals.kafka_cluster import wait_for

TOPICS, CONFIGS = "TopicCommand", "org.apache.kafka.tools.ConfigCommand"
LEVELS = {**METADATA_VERSIONS, "3.3-IV3": 7}
"""The names that Kafka's tool prints for levels of metadata.version."""
CONFIG = re.compile(r"^  (\S+?)=(.*?) sensitive=(\w+) synonyms=", re.MULTILINE)
QUOTAS = re.compile(r"^Quota configs for (.*) are (\S+=.*)$", re.MULTILINE)
WHOSE = re.compile(r"(\S+) '(\S+)'")
USER = re.compile(r"^SCRAM credential configs for user-principal '(\S+)' are (.*)$", re.MULTILINE)
HASHED = re.compile(r"(SCRAM-SHA-\d+)=iterations=(\d+)")


@pytest.fixture(scope="module")
def tools() -> Iterator[Tools]:
    with Tools() as tools:
        yield tools


@pytest.fixture(scope="module")
def topic(any_broker: str) -> str:
    """A topic of three partitions with a config, and records in two of them."""
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
    """Runs a command of ours and the corresponding tool of Kafka's."""

    def __init__(self, tools: Tools, address: str, capsys: pytest.CaptureFixture[str]) -> None:
        self._tools, self._at, self._capsys = tools, ("--bootstrap-server", address), capsys

    def ours(self, *words: str) -> Any:
        """Run our command and return its JSON output, usually rows."""
        assert main([*words, "--json", *self._at]) == 0
        return json.loads(self._capsys.readouterr().out)

    def theirs(self, name: str, *words: str) -> str:
        said = self._tools.run(name, *self._at, *words)
        assert said.status == 0, said.text
        return said.text


@contextmanager
def done_and_undone(do: list[str], undo: list[str]) -> Iterator[None]:
    """Run a command, and undo it afterwards, because other tests compare all resources of the same brokers."""
    assert main(do) == 0
    try:
        yield
    finally:
        assert main(undo) == 0


def names_in(pairs: str) -> str:
    """Return the names in NAME=VALUE,…"""
    return ",".join(pair.partition("=")[0] for pair in pairs.split(","))


@pytest.fixture
def both(tools: Tools, any_broker: str, capsys: pytest.CaptureFixture[str]) -> Both:
    return Both(tools, any_broker, capsys)


def numbers(text: str) -> list[int]:
    return [int(each) for each in text.split(",") if each]


def test_the_same_topics_are_listed(both: Both, topic: str) -> None:
    mine = [row["topic"] for row in both.ours("topics", "list", "--internal")]
    assert topic in mine
    assert sorted(mine) == sorted(both.theirs(TOPICS, "--list").split())


def test_the_same_topic_is_described(both: Both, topic: str) -> None:
    output = both.theirs(TOPICS, "--describe", "--topic", topic)
    (topic_id,) = re.findall(r"TopicId: (\S+)", output)
    found = re.findall(r"Partition: (\d+)\s+Leader: (\d+)\s+Replicas: (\S*)\s+Isr: (\S*)", output)
    assert [
        (row["topic_id"], row["partition"], row["leader"], row["replicas"], row["in_sync"])
        for row in both.ours("topics", "describe", topic)
    ] == [(topic_id, int(p), int(leader), numbers(replicas), numbers(isr)) for p, leader, replicas, isr in found]


@pytest.mark.parametrize("everything", [(), ("--all",)], ids=["set", "all"])
@pytest.mark.parametrize("kind", ["topics", "brokers"])
def test_the_same_configs_are_described(both: Both, topic: str, kind: str, everything: tuple[str, ...]) -> None:
    named = ("--entity-type", kind, "--entity-name", topic if kind == "topics" else "1")
    output = CONFIG.findall(both.theirs(CONFIGS, "--describe", *named, *everything))
    theirs = {name: None if value == "null" or hidden == "true" else value for name, value, hidden in output}
    mine = {row["config"]: row["value"] for row in both.ours("configs", "describe", *named, *everything)}
    assert {name: None if value == "(hidden)" else value for name, value in mine.items()} == theirs
    assert bool(mine) == bool(everything or kind == "topics")


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        ("groups", "consumer.session.timeout.ms=50000,consumer.heartbeat.interval.ms=6000"),
        ("client-metrics", "metrics=org.apache.kafka.,interval.ms=5000"),
        ("broker-loggers", ""),
    ],
)
def test_the_same_configs_of_other_resources_are_described(
    both: Both, any_broker: str, kind: str, changes: str
) -> None:
    name = f"told-{uuid.uuid4().hex[:8]}" if changes else "1"
    named = ("--entity-type", kind, "--entity-name", name)
    alter = ["configs", "alter", *named, "--bootstrap-server", any_broker]
    undone = done_and_undone([*alter, "--add-config", changes], [*alter, "--delete-config", names_in(changes)])
    with undone if changes else nullcontext():
        wait_for(lambda: not changes or both.ours("configs", "describe", *named) != [], "the configs are there")
        output = CONFIG.findall(both.theirs(CONFIGS, "--describe", *named))
        mine = both.ours("configs", "describe", *named, *(() if changes else ("--all",)))
        assert {row["config"]: row["value"] for row in mine} == {name: value for name, value, _ in output}
        assert len(mine) >= 2


@pytest.mark.parametrize(
    ("entity", "limits"),
    [
        (("clients", "c-1"), "producer_byte_rate=1000,request_percentage=12.5"),
        (("users", "u-1"), "consumer_byte_rate=2000,controller_mutation_rate=3"),
        (("users", "u-2", "clients", "c-2"), "producer_byte_rate=3000"),
        (("ips", "10.0.0.7"), "connection_creation_rate=7"),
    ],
    ids=["client", "user", "client of a user", "address"],
)
def test_the_same_quotas_are_described(both: Both, any_broker: str, entity: tuple[str, ...], limits: str) -> None:
    pairs = list(zip(entity[::2], entity[1::2], strict=True))
    named = [word for kind, name in pairs for word in ("--entity-type", kind, "--entity-name", name)]
    alter = ["quotas", "alter", *named, "--bootstrap-server", any_broker]
    with done_and_undone([*alter, "--add-config", limits], [*alter, "--delete-config", names_in(limits)]):
        wait_for(lambda: both.ours("quotas", "describe", *named) != [], "the limits are there")
        ((who, output),) = QUOTAS.findall(both.theirs(CONFIGS, "--describe", *named))
        mine = both.ours("quotas", "describe", *named)
    theirs = [each.split("=") for each in output.split(", ")]
    assert [(row["quota"], row["value"]) for row in mine] == sorted((name, float(value)) for name, value in theirs)
    named_there = {kind.replace("user-principal", "user").replace("-", "_"): name for kind, name in WHOSE.findall(who)}
    assert {key: mine[0][key] for key in ("user", "client_id", "ip") if mine[0][key]} == named_there
    assert list(named_there.values()) == [name for _, name in pairs]


def test_the_same_users_are_listed(both: Both, any_broker: str) -> None:
    name = f"user-{uuid.uuid4().hex[:8]}"
    how = ("--mechanism", "SCRAM-SHA-256", "--mechanism", "SCRAM-SHA-512", "--iterations", "8192")
    at = ("--bootstrap-server", any_broker)
    with done_and_undone(
        ["users", "add", name, *how, "--insecure-password", "s3cret", *at], ["users", "delete", name, "--yes", *at]
    ):
        wait_for(lambda: len(both.ours("users", "describe", name)) == 2, "the user is there")
        told_of = ("--entity-type", "users", "--entity-name", name)
        ((who, output),) = USER.findall(both.theirs(CONFIGS, "--describe", *told_of))
        mine = [tuple(row.values()) for row in both.ours("users", "describe", name)]
    assert mine == sorted((who, mechanism, int(iterations)) for mechanism, iterations in HASHED.findall(output))


def test_the_record_count_agrees_with_the_offsets(both: Both, topic: str) -> None:
    ends = re.findall(rf"^{topic}:(\d+):(\d+)$", both.theirs("GetOffsetShell", "--topic", topic), re.MULTILINE)
    mine = both.ours("records", "count", topic)
    assert [(row["partition"], row["records"]) for row in mine] == [(int(p), int(end)) for p, end in ends]


def test_the_cluster_has_the_same_id(both: Both, any_broker: str) -> None:
    # In a JVM of its own, because the tool exits it.
    (reported,) = re.findall(r"Cluster ID: (\S+)", tool("ClusterTool", "cluster-id", "--bootstrap-server", any_broker))
    assert both.ours("cluster", "describe")["cluster_id"] == reported


def test_the_same_replicas_are_in_the_directories(both: Both, topic: str) -> None:
    output = both.theirs("LogDirsCommand", "--describe", "--topic-list", topic)
    (found,) = (json.loads(line) for line in output.splitlines() if line.startswith("{"))
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


def test_the_same_features_are_active(both: Both) -> None:
    output = both.theirs("FeatureCommand", "describe")
    fields = ("Feature", "SupportedMinVersion", "SupportedMaxVersion", "FinalizedVersionLevel", "Epoch")
    pattern = r"\s+".join(rf"{field}: (\S+)" for field in fields)
    theirs = {name: [level_of(text) for text in rest] for name, *rest in re.findall(pattern, output)}
    mine = {name: rest for name, *rest in (row.values() for row in both.ours("cluster", "features"))}
    assert mine.keys() == theirs.keys() >= {"metadata.version", "kraft.version"}
    for name, (*levels, epoch) in mine.items():
        assert levels == theirs[name][:-1]
        assert abs(theirs[name][-1] - epoch) < 1000  # Apache Kafka's value grows with its metadata log


def level_of(text: str) -> int:
    """Return a feature level, from a number or from Kafka's name of a metadata.version."""
    return int(text) if text.isdecimal() else LEVELS[text]


def test_the_same_voters_are_listed(both: Both) -> None:
    before = both.ours("cluster", "quorum")
    heading, *lines = both.theirs("MetadataQuorumCommand", "describe", "--replication").splitlines()
    after = both.ours("cluster", "quorum")
    theirs = [dict(zip(heading.split(), line.split(), strict=False)) for line in lines]
    assert len(before) == len(theirs) == len(after) == 1
    for first, reported, last in zip(before, theirs, after, strict=True):
        assert (first["node_id"], first["directory_id"], first["status"]) == (
            int(reported["NodeId"]),
            reported["DirectoryId"],
            reported["Status"],
        )
        assert first["log_end_offset"] <= int(reported["LogEndOffset"]) <= last["log_end_offset"]
        assert first["lag"] == int(reported["Lag"]) == 0
