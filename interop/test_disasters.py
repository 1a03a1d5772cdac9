"""The drills of `docs/disasters.md`, with the commands that the page names, on its practice cluster."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from interop.drill_cluster import DrillCluster
from ottla import Admin, Broker, Consumer, NewTopic, Producer
from ottla.client.admin import AclBinding, AclBindingFilter
from ottla.errors import KafkaError
from ottla.model import TopicPartition
from tests.cli.conftest import ottla
from tests.patience import eventually

COUNT = 30
SECONDS = 90.0


@pytest.fixture
def drill(tmp_path: Path) -> Iterator[DrillCluster]:
    """The practice cluster with a topic of three replicas, and one of one replica."""
    with DrillCluster(tmp_path) as cluster:
        with Admin(bootstrap_servers=cluster.servers) as admin:
            admin.create_topics([NewTopic("orders", 3, 3), NewTopic("single", 3, 1)])
        for topic in ("orders", "single"):
            write(cluster.servers, topic, range(COUNT))
        yield cluster


def write(servers: str, topic: str, numbers: range) -> None:
    with Producer(bootstrap_servers=servers, acks="all") as producer:
        for number in numbers:
            producer.send(topic, b"%d" % number, partition=number % 3)


def read(servers: str, topic: str) -> list[int]:
    """Return all values of a topic."""
    with Consumer(bootstrap_servers=servers, enable_auto_commit=False) as consumer:
        places = [TopicPartition(topic, info.partition) for info in consumer.partitions_for(topic)]
        consumer.assign(places)
        consumer.seek_to_beginning()
        ends, found = consumer.end_offsets(places), []
        while any(consumer.position(tp) < end for tp, end in ends.items()):
            found += [int(record.value or b"-1") for record in consumer.poll(1.0)]
    return sorted(found)


def quorum(drill: DrillCluster) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(drill.run("cluster", "quorum", "--json").out)
    return found


def wait_until_clean(drill: DrillCluster, replicas: int = 3) -> None:
    """Wait until every partition of `orders` has all replicas in sync."""

    def is_clean() -> bool:
        with Admin(bootstrap_servers=drill.servers) as admin:
            try:
                return all(
                    len(each.in_sync_replicas) == replicas
                    for each in admin.describe_topics(["orders"])["orders"].partitions
                )
            except KafkaError:
                return False

    eventually(is_clean, SECONDS)


def follower(drill: DrillCluster) -> int:
    """Return a node that does not lead the quorum."""
    with Admin(bootstrap_servers=drill.servers) as admin:
        leader = admin.describe_metadata_quorum().leader_id
    return next(node for node in drill.addresses if node != leader)


def test_a_lost_node_is_named_and_returns(drill: DrillCluster) -> None:
    lost = follower(drill)
    drill.kill(lost)
    eventually(lambda: f"broker {lost} (127.0.0.1:" in drill.run("cluster", "status").out, SECONDS)
    assert "orders" in drill.run("cluster", "describe").out
    assert drill.run("doctor").status == 1
    write(drill.servers, "orders", range(COUNT, 2 * COUNT))
    drill.restart(lost)
    wait_until_clean(drill)
    assert read(drill.servers, "orders") == list(range(2 * COUNT))


def test_the_replicas_of_a_lost_node_are_given_to_the_others(drill: DrillCluster) -> None:
    lost = follower(drill)
    left = ",".join(str(node) for node in drill.addresses if node != lost)
    drill.kill(lost)
    eventually(lambda: f"broker {lost} (127.0.0.1:" in drill.run("cluster", "status").out, SECONDS)
    deleted = drill.run("topics", "delete", "single", "--yes")  # a replica of it is lost for good
    assert deleted.status == 0, deleted.err
    moved = drill.run("cluster", "reassign", "--topic", "orders", "--to", left, "--yes")
    assert moved.status == 0, moved.err
    wait_until_clean(drill, replicas=2)
    for words in (
        ("cluster", "unregister", str(lost), "--yes"),
        ("cluster", "remove-controller", str(lost), "--yes"),
        ("cluster", "unregister-controller", str(lost)),
    ):
        done = drill.run(*words)
        assert done.status == 0, done.err
    eventually(lambda: f"broker {lost} " not in drill.run("cluster", "status").out, SECONDS)
    assert read(drill.servers, "orders") == list(range(COUNT))


def test_a_lost_disk_fills_from_the_other_replicas(drill: DrillCluster) -> None:
    lost = follower(drill)
    cluster_id = json.loads(drill.run("cluster", "describe", "--json").out)["cluster_id"]
    drill.kill(lost)
    folder = drill.folder(lost)
    folder.rename(folder.with_name("lost disk"))
    config = drill.config(lost)
    formatted = ottla("storage", "format", "-t", cluster_id, "-c", config, "--no-initial-controllers")
    assert formatted.status == 0, formatted.err
    drill.restart(lost)
    wait_until_clean(drill)
    assert read(drill.servers, "orders") == list(range(COUNT))


def test_a_damaged_log_is_found_and_rebuilt(drill: DrillCluster) -> None:
    lost = follower(drill)
    drill.kill(lost)
    folder = drill.folder(lost)
    (log,) = (folder / "orders-0").glob("*.log")
    data = bytearray(log.read_bytes())
    data[len(data) // 2] ^= 0xFF
    log.write_bytes(data)
    verified = ottla("log", "verify", folder)
    assert verified.status == 1
    assert "orders-0" in verified.out
    (folder / "orders-0").rename(folder.with_name("orders-0 set aside"))
    repaired = ottla("log", "repair", folder, "--topic-partition", "orders-0", "--execute")
    assert repaired.status == 0, repaired.err
    drill.restart(lost)
    wait_until_clean(drill)
    assert read(drill.servers, "orders") == list(range(COUNT))
    assert ottla("log", "verify", folder).status == 0


def test_without_a_majority_a_backup_of_the_rest_is_restored_elsewhere(drill: DrillCluster, tmp_path: Path) -> None:
    with Admin(bootstrap_servers=drill.servers) as admin:
        places = {each.partition: each.leader for each in admin.describe_topics(["single"])["single"].partitions}
    first, second, left = drill.addresses
    drill.kill(first)
    drill.kill(second)
    eventually(lambda: "all well" not in drill.run("cluster", "status").out, SECONDS)
    address = drill.addresses[left]
    made = ottla("backup", "create", tmp_path / "backup", "single", "-b", address, "--no-groups", "--skip-leaderless")
    kept = [number for number, leader in places.items() if leader == left]
    assert made.status == (1 if len(kept) < 3 else 0), made.err
    assert all((f"single-{number}" in made.err) == (number not in kept) for number in places)
    dumped = ottla("log", "dump", "--print-data-log", "--json", *drill.folder(left).glob("orders-0/*.log"))
    assert dumped.status == 0, dumped.err
    with Broker() as other:
        assert ottla("restore", tmp_path / "backup", "-b", other.bootstrap_servers).status == 0
        assert read(other.bootstrap_servers, "single") == [n for n in range(COUNT) if n % 3 in kept]
    drill.restart(first)
    wait_until_clean_of(drill, {first, left})


def wait_until_clean_of(drill: DrillCluster, nodes: set[int]) -> None:
    """Wait until these nodes are in sync in `orders`, and a topic can be created."""

    def is_usable() -> bool:
        with Admin(bootstrap_servers=drill.servers) as admin:
            try:
                partitions = admin.describe_topics(["orders"])["orders"].partitions
                return all(nodes <= set(each.in_sync_replicas) for each in partitions)
            except KafkaError:
                return False

    eventually(is_usable, SECONDS)
    with Admin(bootstrap_servers=drill.servers) as admin:
        admin.create_topics([NewTopic("again", 1, 2)])


def test_a_lost_cluster_is_restored_with_its_access_rules(tmp_path: Path) -> None:
    rights: dict[str, Any] = {"authorizer_class_name": "standard", "super_users": "User:ANONYMOUS"}
    rule = AclBinding("topic", "orders", "User:alice", "read", "allow")
    folder = tmp_path / "backup"
    with Broker(**rights) as lost, Admin(lost.client_settings()) as admin:
        admin.create_topics([NewTopic("orders", 3)])
        admin.create_acls([rule])
        write(lost.bootstrap_servers, "orders", range(COUNT))
        admin.alter_consumer_group_offsets("billing", {TopicPartition("orders", 0): 4})
        made = ottla("backup", "create", folder, "-b", lost.bootstrap_servers)
        assert made.status == 0, made.err
    with Broker(**rights) as new, Admin(new.client_settings()) as admin:
        restored = ottla("restore", folder, "-b", new.bootstrap_servers, "--with-access")
        assert restored.status == 0, restored.err
        assert read(new.bootstrap_servers, "orders") == list(range(COUNT))
        assert admin.describe_acls(AclBindingFilter()) == [rule]
        assert admin.list_consumer_group_offsets("billing")[TopicPartition("orders", 0)].offset == 4
        added = ottla("users", "add", "alice", "--password-stdin", "-b", new.bootstrap_servers, stdin="secret\n")
        assert added.status == 0, added.err

        admin.delete_topics(["orders"])
        assert ottla("restore", folder, "orders", "-b", new.bootstrap_servers).status == 0
        assert read(new.bootstrap_servers, "orders") == list(range(COUNT))
        assert ottla("restore", folder, "orders", "-b", new.bootstrap_servers, "--prefix", "restored.").status == 0
        assert read(new.bootstrap_servers, "restored.orders") == list(range(COUNT))
        for words in (
            ("cluster", "log-dirs"),
            ("topics", "list", "--long"),
            ("configs", "alter", "--topic", "orders", "--add-config", "retention.ms=3600000"),
            ("records", "delete", "orders:0", "--before-offset", "1", "--yes"),
        ):
            assert ottla(*words, "-b", new.bootstrap_servers).status == 0
