"""`ottla groups` and `ottla transactions` print the same tables as Kafka's tools, at both brokers."""

from __future__ import annotations

import subprocess
import sys
import uuid
from collections.abc import Iterator

import confluent_kafka as ck
import pytest

from interop.kafka_tools import Tools
from ottla import Admin, Consumer, NewTopic, Producer, TopicPartition
from ottla.cli.main import main

GROUPS = "consumer.group.ConsumerGroupCommand"
TRANSACTIONS = "TransactionsCommand"
PATIENCE = 30.0
Table = list[list[str]]
REMARKS = ("Consumer", "Warn:")
"""The first words of lines in the output of Kafka's tool that are no rows."""


@pytest.fixture(scope="module")
def tools() -> Iterator[Tools]:
    with Tools() as tools:
        yield tools


@pytest.fixture
def topic(any_broker: str) -> str:
    """A topic of three partitions with ten records each, one per second."""
    name = f"topic-{uuid.uuid4().hex[:8]}"
    with Admin(bootstrap_servers=any_broker) as admin, Producer(bootstrap_servers=any_broker) as producer:
        admin.create_topics([NewTopic(name, 3, 1, configs={"retention.ms": "-1"})])  # the records are of 2023
        for n in range(30):
            producer.send(name, b"v", partition=n % 3, timestamp=1_700_000_000_000 + n // 3 * 1000)
    return name


@pytest.fixture
def group() -> str:
    return f"group-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def left(any_broker: str, group: str, topic: str) -> str:
    """A group without members, with two committed offsets."""
    with Admin(bootstrap_servers=any_broker) as admin:
        admin.alter_consumer_group_offsets(group, {TopicPartition(topic, 0): 4, TopicPartition(topic, 2): 9})
    return group


@pytest.fixture
def members(any_broker: str, group: str, topic: str) -> Iterator[str]:
    """A group with offsets and two members, one of them static."""
    made = [
        Consumer(
            bootstrap_servers=any_broker,
            group_id=group,
            auto_offset_reset="earliest",
            heartbeat_interval_ms=100,
            client_id=client_id,
            group_instance_id=instance_id,
        )
        for client_id, instance_id in (("a", None), ("b", "i"))
    ]
    for consumer in made:
        consumer.subscribe([topic])
    while sorted(len(consumer.assignment()) for consumer in made) != [1, 2]:
        for consumer in made:
            consumer.poll(0.05)
    for consumer in made:
        consumer.commit(dict.fromkeys(consumer.assignment(), 5))
    yield group
    for consumer in made:
        consumer.close()


def ours(*words: object) -> Table:
    """Run our command and return the table on its standard output, as cells."""
    command = [sys.executable, "-m", "ottla.cli.main", *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stderr
    return cells(done.stdout)


def theirs(tools: Tools, name: str, *words: object) -> Table:
    """Run Kafka's tool and return its table as cells, without remarks. Our command prints remarks to standard error."""
    said = tools.run(name, *words)
    assert said.status == 0, said.text
    return cells(said.text)


def cells(text: str) -> Table:
    """Normalize rows of cells: an empty cell, `None` and a dash all mean a missing value."""
    lines = [[cell for cell in line.split() if cell not in ("-", "None")] for line in text.splitlines()]
    return [line for line in lines if line and line[0] not in REMARKS]


def in_order(table: Table) -> Table:
    return [table[0], *sorted(table[1:])]


@pytest.mark.parametrize(
    ("our_words", "their_words"),
    [
        ([], ["--offsets"]),
        (["--verbose"], ["--offsets", "--verbose"]),
        (["--members"], ["--members"]),
        (["--state"], ["--state"]),
    ],
    ids=["offsets", "verbose", "members", "state"],
)
def test_active_groups_are_described_equally(
    tools: Tools, any_broker: str, members: str, our_words: list[str], their_words: list[str]
) -> None:
    at = ("--bootstrap-server", any_broker)
    mine = ours("groups", "describe", members, *our_words, *at)
    assert in_order(mine) == in_order(theirs(tools, GROUPS, *at, "--describe", "--group", members, *their_words))


def test_groups_without_members_are_described_and_listed_equally(tools: Tools, any_broker: str, left: str) -> None:
    at = ("--bootstrap-server", any_broker)
    mine = ours("groups", "describe", left, *at)
    assert in_order(mine) == in_order(theirs(tools, GROUPS, *at, "--describe", "--group", left))
    listed = ours("groups", "list", *at)
    assert sorted(listed) == sorted(theirs(tools, GROUPS, *at, "--list"))
    mine = ours("groups", "list", "--verbose", *at)
    assert in_order(mine) == in_order(theirs(tools, GROUPS, *at, "--list", "--type", "--state"))


@pytest.mark.parametrize(
    "way",
    [
        "--to-earliest",
        "--to-latest",
        "--to-current",
        "--to-offset 7",
        "--to-offset 70",
        "--to-datetime 2023-11-14T22:13:23.500",
        "--to-datetime 2023-11-14T23:13:23.500+01:00",
        "--by-duration PT1H",
    ],
)
def test_offsets_are_reset_equally(tools: Tools, any_broker: str, left: str, topic: str, way: str) -> None:
    at = ("--bootstrap-server", any_broker)
    mine = ours("groups", "reset-offsets", left, "--topic", topic, *way.split(), "--dry-run", *at)
    said = theirs(tools, GROUPS, *at, "--reset-offsets", "--group", left, "--topic", topic, *way.split(), "--dry-run")
    assert in_order(mine) == in_order(said)


def test_an_export_of_one_is_read_by_the_other(tools: Tools, any_broker: str, left: str, topic: str) -> None:
    at = ("--bootstrap-server", any_broker)
    shift = ("--all-topics", "--shift-by", "-2", "--export")
    mine = ours("groups", "reset-offsets", left, *shift, *at)
    said = theirs(tools, GROUPS, *at, "--reset-offsets", "--group", left, *shift, "--dry-run")
    assert sorted(line[0].replace('"', "") for line in mine) == sorted(line[0].replace('"', "") for line in said)


def test_offsets_and_groups_that_one_tool_deletes_are_not_listed_by_the_other(
    tools: Tools, any_broker: str, left: str, topic: str
) -> None:
    at = ("--bootstrap-server", any_broker)
    assert ours("groups", "delete-offsets", left, "--topic", f"{topic}:0", *at) == []
    said = theirs(tools, GROUPS, *at, "--describe", "--group", left)
    assert [row[:4] for row in said[1:]] == [[left, topic, "2", "9"]]
    theirs(tools, GROUPS, *at, "--delete-offsets", "--group", left, "--topic", f"{topic}:2")
    with Admin(bootstrap_servers=any_broker) as admin:
        assert admin.list_consumer_group_offsets(left) == {}


def test_transactions_are_described_equally(tools: Tools, any_broker: str, topic: str) -> None:
    at = ("--bootstrap-server", any_broker)
    name = f"tx-{uuid.uuid4().hex[:8]}"
    producer = ck.Producer({"bootstrap.servers": any_broker, "transactional.id": name})
    producer.init_transactions(PATIENCE)
    producer.begin_transaction()
    producer.produce(topic, b"v", partition=1)
    producer.flush(PATIENCE)
    assert in_order(ours("transactions", "list", *at)) == in_order(theirs(tools, TRANSACTIONS, *at, "list"))
    mine = ours("transactions", "describe", name, *at)
    said = theirs(tools, TRANSACTIONS, *at, "describe", "--transactional-id", name)
    lasts = mine[0].index("TransactionDurationMs")
    for table in (mine, said):
        assert int(table[1].pop(lasts)) >= 0
    assert mine == said
    partition = ("--partition", 1)
    mine = ours("transactions", "describe-producers", topic, *partition, *at)
    assert mine == theirs(tools, TRANSACTIONS, *at, "describe-producers", "--topic", topic, *partition)
    producer.abort_transaction(PATIENCE)


def test_a_share_group_is_reported_as_one(
    tools: Tools, apache_kafka: str, group: str, capsys: pytest.CaptureFixture[str]
) -> None:
    at = ("--bootstrap-server", apache_kafka)
    with Admin(bootstrap_servers=apache_kafka) as admin:
        admin.create_topics([NewTopic(f"shared-{group}")])
    reading = ("--topic", f"shared-{group}", "--group", group, "--timeout-ms", "1000")
    assert tools.run("org.apache.kafka.tools.consumer.ConsoleShareConsumer", *at, *reading).status == 0
    assert [group, "Share"] in [row[:2] for row in ours("groups", "list", "--type", "share", "--verbose", *at)]
    assert [group] not in ours("groups", "list", *at)
    capsys.readouterr()
    assert main(["groups", "describe", group, *at]) == 0
    said = capsys.readouterr()
    assert said.out.split() == ["GROUP", "TOPIC", "PARTITION", "START-OFFSET", "LAG"]
    assert f"Share group '{group}' has no active members." in said.err
