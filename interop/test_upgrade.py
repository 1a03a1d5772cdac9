"""Data directories of earlier versions: upgraded with data, groups and open transactions, and rolled back.

`docs/upgrade.md` describes the steps that these tests take. The commits stand in for releases until there are some.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from interop.old_versions import PRESENT, VersionedNode, find_source, run_command
from interop.writer import Writer
from ottla import Admin, Consumer, NewTopic, Producer
from ottla.free_ports import free_ports
from ottla.model import TopicPartition
from tests.patience import eventually

OLDEST = "b73cadae8c7d308fcbc84c4e61483ae7bf85fe3e"
"""2026-11-26: the first version that stores members of consumer groups as Kafka does; older ones cannot be rolled back to."""
NODES = (1, 2, 3)
QUICK = {"isolation_level": "read_committed", "auto_offset_reset": "earliest"}


def source_of(commit: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    source = find_source(commit, tmp_path_factory.getbasetemp() / "old-versions")
    if source is None:
        pytest.skip(f"this clone does not have the commit {commit[:8]}, whose data directory is upgraded")
    return source


def read_values(address: str, topic: str, count: int, group: str, protocol: str) -> list[bytes | None]:
    """Read as a member of a group, and commit."""
    settings: dict[str, Any] = {**QUICK, "group_id": group, "group_protocol": protocol}
    with Consumer(bootstrap_servers=address, **settings) as consumer:
        consumer.subscribe([topic])
        values: list[bytes | None] = []

        def has_all() -> bool:
            values.extend(record.value for record in consumer.poll(0.2))
            return len(values) >= count

        eventually(has_all)
        consumer.commit()
    return values


def committed(address: str, group: str) -> dict[str, int]:
    with Admin(bootstrap_servers=address) as admin:
        return {str(tp): at.offset for tp, at in admin.list_consumer_group_offsets(group).items()}


def test_one_node_is_upgraded_and_rolled_back(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    old = source_of(OLDEST, tmp_path_factory)
    (port,) = free_ports(1)
    address, file = f"127.0.0.1:{port}", tmp_path / "server.properties"
    file.write_text(f"listeners=PLAINTEXT://{address}\nlog.dirs={tmp_path / 'data'}\n")
    node = VersionedNode(file)
    numbers = [b"%d" % number for number in range(300)]
    try:
        node.start(old)
        node.wait_until_ready()
        with Producer(bootstrap_servers=address, compression_type="zstd") as producer:
            for number in numbers:
                producer.send("orders", number, key=number, headers=[("h", b"1")])
        assert read_values(address, "orders", 300, "classics", "classic") == numbers
        assert read_values(address, "orders", 300, "consumers", "consumer") == numbers
        open_one = Producer(bootstrap_servers=address, transactional_id="payments")
        with open_one:
            open_one.init_transactions()
            open_one.begin_transaction()
            open_one.send("orders", b"before the upgrade").result()
            before = {group: committed(address, group) for group in ("classics", "consumers")}

            node.stop()
            node.start(PRESENT)
            node.wait_until_ready()
            open_one.send("orders", b"after the upgrade").result()
            with Consumer(bootstrap_servers=address, group_id="transactional") as consumer:
                position = {TopicPartition("orders", 0): 300}
                open_one.send_offsets_to_transaction(position, consumer.group_metadata())
            open_one.commit_transaction()
        assert {group: committed(address, group) for group in before} == before
        assert committed(address, "transactional") == {"orders-0": 300}
        all_values = [*numbers, b"before the upgrade", b"after the upgrade"]
        assert read_values(address, "orders", 302, "newer", "consumer") == all_values
        assert read_values(address, "orders", 2, "classics", "classic") == all_values[300:]

        node.stop()
        node.start(old)
        node.wait_until_ready()
        assert committed(address, "newer") == committed(address, "classics")
        assert read_values(address, "orders", 302, "again", "classic") == all_values
        with Producer(bootstrap_servers=address, transactional_id="payments") as producer:
            producer.init_transactions()
            with producer.transaction():
                producer.send("orders", b"rolled back")
        assert read_values(address, "orders", 1, "classics", "classic") == [b"rolled back"]
    finally:
        node.stop()


@pytest.fixture
def cluster(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Path, dict[int, VersionedNode], str]]:
    """Three nodes of both roles that the old version has formatted and started."""
    old = source_of(OLDEST, tmp_path_factory)
    ports = free_ports(6)
    controllers = {node: f"127.0.0.1:{ports[node + 2]}" for node in NODES}
    ids = {node: run_command(old, "storage", "random-uuid") for node in NODES}
    voters = ",".join(f"{node}@{controllers[node]}:{ids[node]}" for node in NODES)
    cluster_id = run_command(old, "storage", "random-uuid")
    nodes = {}
    for node in NODES:
        file = tmp_path / f"server-{node}.properties"
        file.write_text(
            f"process.roles=broker,controller\nnode.id={node}\n"
            f"listeners=PLAINTEXT://127.0.0.1:{ports[node - 1]},CONTROLLER://{controllers[node]}\n"
            "controller.listener.names=CONTROLLER\n"
            f"controller.quorum.bootstrap.servers={','.join(controllers.values())}\n"
            "default.replication.factor=3\nmin.insync.replicas=2\n"
            f"log.dirs={tmp_path / f'data-{node}'}\n"
        )
        run_command(old, "storage", "format", "-t", cluster_id, "-c", str(file), "--initial-controllers", voters)
        nodes[node] = VersionedNode(file)
    address = ",".join(f"127.0.0.1:{ports[node - 1]}" for node in NODES)
    with ExitStack() as stack:
        for started in nodes.values():
            stack.callback(started.stop)
            started.start(old)
        for started in nodes.values():
            started.wait_until_ready()
        yield old, nodes, address


def test_a_cluster_is_upgraded_and_rolled_back_node_by_node_while_clients_write(
    cluster: tuple[Path, dict[int, VersionedNode], str],
) -> None:
    old, nodes, address = cluster
    with Admin(bootstrap_servers=address) as admin:
        admin.create_topics([NewTopic("orders")])
        with Writer(address, ["orders"], pace_seconds=0.01) as writer:
            writer.go_on()
            for source in (PRESENT, old, PRESENT):
                for node in nodes.values():
                    node.stop()
                    writer.go_on()
                    node.start(source)
                    node.wait_until_ready()
                    eventually(
                        lambda: len(admin.describe_topics(["orders"])["orders"].partitions[0].in_sync_replicas) == 3
                    )
                    writer.go_on()
        reported = writer.delivered["orders"]
        assert reported == list(range(len(reported)))
        values = read_values(address, "orders", len(reported), "readers", "consumer")
        assert values == [b"%d" % number for number in reported]
        before = admin.describe_features().finalized_features["metadata.version"].max_version_level
        assert before == 30
    assert run_command(PRESENT, "cluster", "features", "-b", address)
