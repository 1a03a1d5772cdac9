"""`ottla topics`."""

from __future__ import annotations

from tests.cli.conftest import ottla


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


def test_what_cannot_be_is_one_sentence(address: str, topic: str) -> None:
    at = ("--bootstrap-server", address)
    ottla("topics", "create", topic, *at)
    again = ottla("topics", "create", topic, *at)
    assert again.status == 1
    assert "TOPIC_ALREADY_EXISTS" in again.sentence
    unknown = ottla("topics", "describe", f"no-{topic}", *at)
    assert unknown.status == 1
    assert f"there is no topic 'no-{topic}'" in unknown.sentence
    config = ottla("topics", "create", f"{topic}-2", "--config", "retention.sm=1", *at)
    assert config.status == 1
    assert "retention.sm" in config.sentence
    copies = ottla("topics", "create", f"{topic}-2", "--replication-factor", 3, *at)
    assert copies.status == 1
    assert "INVALID_REPLICATION_FACTOR" in copies.sentence
