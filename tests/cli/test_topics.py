"""`ottla topics`."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from ottla import Admin, NewTopic, OffsetAndTimestamp, TopicPartition
from ottla.cli.topics import rows_of
from ottla.client.admin import ConfigResource
from tests.cli.conftest import ottla
from tests.cli.terminal import Terminal


def test_topics_are_created_listed_described_and_deleted(address: str, topic: str) -> None:
    at = ("--bootstrap-server", address)
    created = ottla("topics", "create", topic, "--partitions", 3, "--config", "retention.ms=3600000", *at)
    assert created == (0, "", "")
    assert topic in ottla("topics", "list", *at).out.splitlines()
    ottla("produce", topic, *at, stdin="a\nb\n")
    lines = ottla("topics", "describe", topic, *at).out.splitlines()
    assert lines[0].startswith(f"{topic}: 3 partitions, id ")
    assert lines[1].split("  ")[0] == "partition"
    assert [line.split()[:5] for line in lines[2:5]] == [[str(p), "1", "1", "1", "0"] for p in range(3)]
    assert sum(int(line.split()[5]) for line in lines[2:5]) == 2
    assert ottla("topics", "delete", topic, *at) == (0, "", "")
    assert topic not in ottla("topics", "list", *at).out.splitlines()


def test_topics_are_given_as_options_too(address: str, topic: str) -> None:
    at = ("--bootstrap-server", address)
    assert ottla("topics", "create", "--topic", f"{topic}-a", "-t", f"{topic}-b", "-p", "2", *at) == (0, "", "")
    assert ottla("topics", "describe", "-t", f"{topic}-b", *at).out.startswith(f"{topic}-b: 2 partitions")
    assert ottla("topics", "delete", f"{topic}-a", "--topic", f"{topic}-b", *at) == (0, "", "")


def test_the_offsets_of_all_topics_are_requested_together(
    address: str, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"{topic}-{number}" for number in range(5)]
    asked: list[int] = []
    ask = Admin.list_offsets

    def counted(self: Admin, timestamps: Mapping[TopicPartition, int]) -> dict[TopicPartition, OffsetAndTimestamp]:
        asked.append(len(timestamps))
        return ask(self, timestamps)

    with Admin(bootstrap_servers=address) as admin:
        admin.create_topics(NewTopic(name, 2) for name in names)
        monkeypatch.setattr(Admin, "list_offsets", counted)
        rows = rows_of(admin, admin.describe_topics(names).values())
    assert asked == [10, 10]
    assert {each.name: [row[0] for row in some] for each, some in rows.items()} == {name: [0, 1] for name in names}


def test_topics_get_more_partitions_and_other_configs(address: str, topic: str) -> None:
    at = ("--bootstrap-server", address)
    ottla("topics", "create", topic, "--partitions", 1, "--config", "retention.ms=3600000", *at)
    altered = ottla("topics", "alter", topic, "--partitions", 3, "--config", "max.message.bytes=2000", *at)
    assert altered == (0, "", "")
    assert ottla("topics", "alter", topic, "--delete-config", "retention.ms", *at) == (0, "", "")
    assert ottla("topics", "describe", topic, *at).out.startswith(f"{topic}: 3 partitions, id ")
    topic_itself = ConfigResource("topic", topic)
    with Admin(bootstrap_servers=address) as admin:
        found = admin.describe_configs([topic_itself])[topic_itself]
    assert found["max.message.bytes"].value == "2000"
    assert found["retention.ms"].source != "DYNAMIC_TOPIC_CONFIG"
    fewer = ottla("topics", "alter", topic, "--partitions", 2, *at)
    assert (fewer.status, "INVALID_PARTITIONS" in fewer.sentence) == (1, True)
    nothing = ottla("topics", "alter", topic, *at)
    assert (nothing.status, "nothing to alter" in nothing.sentence) == (2, True)


def test_invalid_arguments_are_one_clear_error(address: str, topic: str) -> None:
    at = ("--bootstrap-server", address)
    ottla("topics", "create", topic, *at)
    again = ottla("topics", "create", topic, *at)
    assert again.status == 1
    assert "TOPIC_ALREADY_EXISTS" in again.sentence
    unknown = ottla("topics", "describe", f"no-{topic}", *at)
    assert unknown.status == 1
    assert f"there is no topic 'no-{topic}'" in unknown.sentence
    assert unknown.sentence.endswith(f"; did you mean {topic!r}?")
    unknown = ottla("topics", "delete", f"{topic}s", *at)
    assert unknown.status == 1
    assert unknown.sentence.endswith(f"; did you mean {topic!r}?")
    assert "did you mean" not in ottla("topics", "describe", "zzz", *at).sentence
    config = ottla("topics", "create", f"{topic}-2", "--config", "retention.sm=1", *at)
    assert config.status == 1
    assert "retention.sm" in config.sentence
    copies = ottla("topics", "create", f"{topic}-2", "--replication-factor", 3, *at)
    assert copies.status == 1
    assert "INVALID_REPLICATION_FACTOR" in copies.sentence


def test_in_a_terminal_deleting_lists_the_topics_and_asks_for_confirmation(address: str, topic: str) -> None:
    at = ("--bootstrap-server", address)
    ottla("topics", "create", topic, "--partitions", 2, *at)
    ottla("produce", topic, *at, stdin="a\nb\nc\n")
    with Terminal("topics", "delete", topic, *at) as terminal:
        terminal.says("Delete them permanently? [y/N]")
        terminal.says("PARTITIONS  RECORDS")
        terminal.says("2           3")
        terminal.type(b"n\n")
        assert terminal.ends() == 1
    assert topic in ottla("topics", "list", *at).out.splitlines()
    with Terminal("topics", "delete", topic, *at) as terminal:
        terminal.says("Delete them permanently? [y/N]")
        terminal.type(b"y\n")
        assert terminal.ends() == 0
    assert topic not in ottla("topics", "list", *at).out.splitlines()


def test_no_topic_is_deleted_if_one_of_them_is_unknown(address: str, topic: str) -> None:
    at = ("--bootstrap-server", address)
    ottla("topics", "create", topic, *at)
    refused = ottla("topics", "delete", topic, f"{topic}-nowhere", *at)
    assert refused.status == 1
    assert f"{topic}-nowhere" in refused.sentence
    assert topic in ottla("topics", "list", *at).out.splitlines()


def test_a_terminal_shows_partitions_replicas_records_and_size_of_each_topic(address: str, topic: str) -> None:
    at = ("-b", address)
    ottla("topics", "create", topic, "-p", 3, *at)
    ottla("produce", topic, *at, stdin="a\nb\n")
    long = ottla("topics", "list", "--long", *at).out.splitlines()
    row = next(line.split() for line in long if line.startswith(topic))
    assert long[0].split() == ["TOPIC", "PARTITIONS", "REPLICAS", "RECORDS", "SIZE"]
    assert (row[1:4], row[5]) == (["3", "1", "2"], "B")
    with Terminal("topics", "list", *at) as terminal:
        terminal.says(topic)
        assert b"PARTITIONS" in terminal.raw
    with Terminal("topics", "list", "--names", *at) as terminal:
        terminal.says(topic)
        assert b"PARTITIONS" not in terminal.raw


def test_long_rows_in_json_have_sizes_in_bytes(address: str, topic: str) -> None:
    ottla("topics", "create", topic, "-b", address)
    found = json.loads(ottla("topics", "list", "--long", "--json", "-b", address).out)
    assert {"topic": topic, "partitions": 1, "replicas": 1, "records": 0, "size": 0} in found


def test_long_and_names_exclude_each_other(address: str) -> None:
    for noun in ("topics", "groups"):
        assert ottla(noun, "list", "-l", "-q", "-b", address).sentence.startswith("--long and --names exclude")
