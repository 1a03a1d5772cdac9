"""`ottla backup` and `ottla restore`, as a person runs them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla import Admin, Broker, Cluster, NewTopic, Producer
from ottla.errors import UnknownTopicOrPartitionError
from ottla.free_ports import free_port
from tests.cli.conftest import ottla
from tests.patience import eventually


@pytest.fixture(scope="module")
def target() -> Iterator[str]:
    with Broker() as broker:
        yield broker.bootstrap_servers


def test_a_topic_is_backed_up_checked_shown_and_restored(address: str, target: str, topic: str, tmp_path: Path) -> None:
    with Producer(bootstrap_servers=address) as producer:
        producer.send(topic, b"hello", key=b"k")
    folder = tmp_path / "backup"
    made = ottla("backup", "create", folder, topic, "-b", address, "--no-groups")
    assert made.status == 0, made.err
    assert made.out.startswith("1 record of 1 topic and the offsets of 0 groups backed up (")
    assert ottla("backup", "verify", folder).out == "checked 1 record in 1 file: no damage\n"
    shown = json.loads(ottla("backup", "show", folder, "--json").out)
    assert shown["topics"][topic]["partitions"] == [{"start": 0, "end": 1, "records": 1}]
    assert topic in ottla("backup", "show", folder).out

    (file,) = folder.glob("topics/*/*/*.log")
    dumped = ottla("log", "dump", "--print-data-log", file).out
    assert "hello" in dumped
    restored = ottla("restore", folder, "-b", target)
    assert (restored.status, restored.out) == (
        0,
        "1 record of 1 topic and the offsets of 0 groups restored\n",
    ), restored.err
    assert ottla("records", "head", topic, "-b", target).out == "hello\n"

    file.write_bytes(file.read_bytes()[:-1] + b"?")
    damaged = ottla("backup", "verify", folder)
    assert damaged.status == 1
    assert damaged.out.startswith(f"{file} is damaged: its SHA-256 is ")
    assert damaged.sentence == "damaged files: 1 of 1"
    again = ottla("restore", folder, "-b", target, "--prefix", "again.")
    assert (again.status, again.out) == (1, "")
    assert "is damaged: its SHA-256 is" in again.sentence
    assert "restore this file from a copy of the backup" in again.sentence
    file.unlink()
    next_run = ottla("backup", "create", folder, topic, "-b", address, "--no-groups")
    assert (next_run.status, next_run.out) == (1, "")
    assert f"{file} cannot be read: No such file or directory; restore this file from a copy" in next_run.sentence


def find_leaders(admin: Admin) -> list[int]:
    """Return the leaders of the topic, -1 for none; one that a broker has not heard of yet has none."""
    try:
        return [each.leader for each in admin.describe_topics(["orders"])["orders"].partitions]
    except UnknownTopicOrPartitionError:
        return [-1]


def test_partitions_without_a_leader_are_skipped_on_request_and_added_later(target: str, tmp_path: Path) -> None:
    folder, restored = tmp_path / "backup", ("--prefix", "partial.", "--offsets", "renumber")
    with Cluster() as cluster, Admin(cluster.client_settings()) as admin:
        admin.create_topics([NewTopic("orders", 3, 1)])
        eventually(lambda: min(find_leaders(admin)) >= 0)
        leaders = find_leaders(admin)
        with Producer(cluster.client_settings()) as producer:
            for number in range(3):
                producer.send("orders", b"%d" % number, partition=number)
        quorum_leader = admin.describe_metadata_quorum().leader_id
        node = next(each for each in leaders if each != quorum_leader)
        cluster.stop(node)
        eventually(lambda: min(find_leaders(admin)) < 0)
        address = cluster.bootstrap_servers
        skipped = [f"orders-{number}" for number, each in enumerate(leaders) if each == node]
        sentence = (
            f"the backup is incomplete: {len(skipped)} partition{'s' * (len(skipped) > 1)} without a leader skipped: "
        )
        sentence += ", ".join(skipped)
        quick = ("--set", "default.api.timeout.ms=1500", "--set", "request.timeout.ms=1000")
        refused = ottla("backup", "create", folder, "orders", "-b", address, "--no-groups", *quick)
        assert refused.status == 1
        assert refused.sentence.endswith("or back up the other partitions with --skip-leaderless")
        made = ottla("backup", "create", folder, "orders", "-b", address, "--no-groups", "--skip-leaderless")
        assert (made.status, made.sentence) == (1, f"{sentence}; run the command again when they have one")
        assert made.out.startswith(f"{3 - len(skipped)} record")
        verified = ottla("backup", "verify", folder)
        assert (verified.status, verified.sentence) == (1, sentence)
        assert sentence in ottla("backup", "show", folder).out
        assert json.loads(ottla("backup", "show", folder, "--json").out)["skipped"] == skipped
        partial = ottla("restore", folder, "-b", target, *restored)
        assert partial.status == 0
        assert sentence in partial.err

        cluster.start(node)
        eventually(lambda: min(find_leaders(admin)) >= 0)
        made = ottla("backup", "create", folder, "orders", "-b", address, "--no-groups", "--skip-leaderless")
    assert (made.status, made.out[:1]) == (0, str(len(skipped))), made.err
    assert ottla("backup", "verify", folder).status == 0
    assert ottla("restore", folder, "-b", target, *restored).out.startswith(f"{len(skipped)} record")


def test_mistakes_end_in_one_sentence(tmp_path: Path, address: str) -> None:
    (tmp_path / "other").write_text("")
    assert ottla("backup", "verify", tmp_path).sentence == (
        f"{tmp_path} has no manifest.json, so it is not the folder of a backup"
    )
    assert ottla("backup", "create", tmp_path, "-b", address).sentence == (
        f"{tmp_path} contains other files: give an empty folder, or one with a backup"
    )
    nowhere = f"127.0.0.1:{free_port()}"
    failed = ottla("backup", "create", tmp_path / "b", "-b", nowhere)
    assert failed.status == 1
    assert failed.sentence.startswith("the cluster to back up is not reachable: ")
    assert nowhere in failed.sentence
