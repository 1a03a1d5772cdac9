"""The commands of "Grow from one node to three" in docs/cluster.md, as they are written there."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla import Admin, Consumer, Producer
from tests.broker.in_sync import in_sync
from tests.broker.quorum_nodes import new_hosts
from tests.cli.conftest import ottla, start
from tests.patience import eventually

pytestmark = pytest.mark.heavy

PAGE = (Path(__file__).parents[2] / "docs" / "cluster.md").read_text(encoding="utf-8")
SECTION = PAGE.partition("### Grow from one node to three\n")[2].partition("\n### ")[0]
COMMANDS = re.findall(r"^    (ottla .*)$", SECTION, re.MULTILINE)
SETTINGS = re.search(
    r"```properties\n# server-1\.properties, and 2 and 3 alike\n(process\.roles=broker,controller.*?)```",
    PAGE,
    re.DOTALL,
)


class Nodes:
    """Three machines: a loopback address, a directory and a process for each."""

    def __init__(self, folder: Path) -> None:
        self.hosts = new_hosts(3)
        self.folder = folder
        self.processes: dict[int, subprocess.Popen[str]] = {}
        self.said: list[str] = []
        assert SETTINGS is not None
        for number in (1, 2, 3):
            settings = SETTINGS[1].replace("node.id=1", f"node.id={number}")
            listeners = settings.replace(
                "listeners=PLAINTEXT://10.0.0.1:9092,CONTROLLER://10.0.0.1:9093",
                f"listeners=PLAINTEXT://10.0.0.{number}:9092,CONTROLLER://10.0.0.{number}:9093",
            )
            (folder / f"server-{number}.properties").write_text(self.here(listeners, number))

    def here(self, text: str, number: int) -> str:
        """Replace the addresses, the directory and the files of the page by those of this test."""
        for each, host in enumerate(self.hosts, 1):
            text = text.replace(f"10.0.0.{each}:", f"{host}:")
        text = text.replace("/var/lib/ottla", str(self.folder / f"data-{number}"))
        return re.sub(r"server-(\d)\.properties", rf"{re.escape(str(self.folder))}/server-\1.properties", text)

    def run(self, command: str) -> str:
        """Run one line; a broker stays, and replaces the earlier process of its node."""
        named = re.search(r"server-(\d)", command)
        number = int(named[1]) if named else 1
        words = shlex.split(self.here(command, number))[1:]
        if words[0] != "broker":
            done = ottla(*words)
            assert done.status == 0, (command, done.err)
            return done.out
        self.stop(number)
        process = self.processes[number] = start(*words)
        assert process.stdout is not None
        assert process.stdout.readline() == f"ready {self.hosts[number - 1]}:9092\n"
        return ""

    def stop(self, number: int) -> None:
        """Stop a node cleanly, and keep what it wrote to standard error."""
        process = self.processes.pop(number, None)
        if process is not None:
            process.terminate()
            self.said.append(process.communicate(timeout=60)[1])


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[Nodes]:
    nodes = Nodes(tmp_path)
    yield nodes
    for number in list(nodes.processes):
        nodes.stop(number)


def test_one_node_becomes_three_by_the_commands_of_the_page_and_keeps_its_records_and_groups(nodes: Nodes) -> None:
    address = f"{nodes.hosts[0]}:9092"
    commands = list(COMMANDS)
    assert len(commands) == 14
    nodes.run(commands.pop(0))
    nodes.run(commands.pop(0))
    settings = {"bootstrap.servers": address}
    with Producer(settings) as producer:
        producer.send("orders", b"before", partition=0).result(30)
    with Consumer({**settings, "group.id": "g", "auto.offset.reset": "earliest"}) as consumer:
        consumer.subscribe(["orders"])
        eventually(lambda: len(consumer.poll(0.2)))
        consumer.commit()
    cluster_id = ""
    for command in commands:
        out = nodes.run(command.replace("CLUSTER_ID", cluster_id))
        if "storage info" in command:
            cluster_id = out.splitlines()[1].split()[2]
        if "add-controller" in command:
            eventually(lambda: admitted(address))
        if "cluster reassign " in command:
            with Admin(settings) as admin:
                for topic in ("orders", "__consumer_offsets"):
                    eventually(lambda topic=topic: in_sync(admin, topic) == {1, 2, 3})  # type: ignore[misc]
    assert "3 brokers" in out
    assert "any one broker may fail, and every partition keeps a leader" in out
    with Admin(settings) as admin:
        assert sorted(each.replica_id for each in admin.describe_metadata_quorum().voters) == [1, 2, 3]
        assert admin.describe_features().finalized_features["eligible.leader.replicas.version"].max_version_level == 1
        assert sum(each.offset for each in admin.list_consumer_group_offsets("g").values()) == 1
    nodes.stop(1)
    assert "is gone" not in "".join(nodes.said)
    with Producer({"bootstrap.servers": f"{nodes.hosts[1]}:9092"}, acks="all") as producer:
        producer.send("orders", b"without the first node", partition=0).result(60)


def admitted(address: str) -> bool:
    """True once the voters follow the leader: a second change of the voters is refused until then."""
    with Admin(bootstrap_servers=address) as admin:
        quorum = admin.describe_metadata_quorum()
    return all(each.last_fetch_timestamp for each in quorum.voters)
