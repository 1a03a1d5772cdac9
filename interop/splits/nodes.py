"""Nodes of both kinds on their hosts, with Kafka's default times, and the cluster layouts."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from interop.splits.network import Network, address
from ottla.storage.directory.meta_properties import random_id
from rivals import apache_kafka as rival
from rivals.kafka_cluster import OTTLA

KAFKA, OURS = "kafka", "ottla"
BROKER, CONTROLLER, COMBINED = "broker", "controller", "broker,controller"
PORT, CONTROLLER_PORT = 9092, 9093
STOP_SECONDS = 60.0


class Role(NamedTuple):
    kind: str
    roles: str


CONSTELLATIONS: Mapping[str, Sequence[Role]] = {
    "kkk": [Role(KAFKA, COMBINED)] * 3,
    "ooo": [Role(OURS, COMBINED)] * 3,
    "ook": [Role(OURS, COMBINED), Role(OURS, COMBINED), Role(KAFKA, BROKER), Role(OURS, CONTROLLER)],
    "kc3": [Role(OURS, BROKER)] * 3 + [Role(KAFKA, CONTROLLER)] * 3,
}
"""One letter per broker; a leading `c` means that the controllers are separate nodes of Kafka."""


class Node:
    """A node that can be killed and started again."""

    def __init__(self, node_id: int, role: Role, network: Network, folder: Path) -> None:
        self.node_id = node_id
        self.kind, self.roles = role
        self.directory_id = random_id()
        self.data = folder / f"data-{node_id}"
        self.properties = folder / f"{node_id}.properties"
        self.out = folder / f"{node_id}.out"
        self._network = network
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def leads(self) -> bool:
        """True if the node is a broker."""
        return BROKER in self.roles

    @property
    def decides(self) -> bool:
        return CONTROLLER in self.roles

    @property
    def voter(self) -> str:
        return f"{self.node_id}@{address(self.node_id)}:{CONTROLLER_PORT}"

    def write(self, nodes: Sequence[Node]) -> None:
        """Write the node's settings with Kafka's names."""
        host = address(self.node_id)
        listeners = [f"PLAINTEXT://{host}:{PORT}"] * self.leads + [
            f"CONTROLLER://{host}:{CONTROLLER_PORT}"
        ] * self.decides
        voters = (each.voter.partition("@")[2] for each in nodes if each.decides)
        settings = {
            "process.roles": self.roles,
            "node.id": str(self.node_id),
            "listeners": ",".join(listeners),
            "controller.quorum.bootstrap.servers": ",".join(voters),
            "log.dirs": str(self.data),
            **COMMON,
        }
        if self.kind == OURS and self.leads:
            settings["cordoned.log.dirs"] = ""
        self.properties.write_text(rival.render(settings))

    def format(self, nodes: Sequence[Node]) -> None:
        """Format the directory with the tool of its kind."""
        how = ["-N"]
        if self.decides:
            how = ["-I", ",".join(f"{each.voter}:{each.directory_id}" for each in nodes if each.decides)]
        tool = rival.java("kafka.tools.StorageTool", "format") if self.kind == KAFKA else [*OTTLA, "storage", "format"]
        rival.run([*tool, "-t", rival.CLUSTER_ID, "-c", str(self.properties), *how])

    def start(self) -> None:
        java = rival.java("kafka.Kafka")
        command = (
            [java[0], "-Xmx320m", "-XX:+UseSerialGC", *java[1:]]
            if self.kind == KAFKA
            else [*OTTLA, "broker", "--config"]
        )
        command = self._network.command(self.node_id, [*command, str(self.properties)])
        with self.out.open("ab") as output:
            self.process = subprocess.Popen(command, stdout=output, stderr=output, cwd=self.properties.parent)

    def signal(self, number: signal.Signals) -> None:
        assert self.process is not None
        self.process.send_signal(number)

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        """Stop the node with SIGTERM, and kill it if it does not end."""
        assert self.process is not None
        self.process.terminate()
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()

    def log(self, partition: str) -> bytes:
        """Return the bytes of all segments of a partition."""
        return b"".join(path.read_bytes() for path in sorted((self.data / partition).glob("*.log")))


COMMON = {
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "offsets.topic.num.partitions": "3",
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.num.partitions": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "group.initial.rebalance.delay.ms": "0",
    "auto.create.topics.enable": "false",
}
"""All other settings have Kafka's defaults: sessions of 9 s, ISR lag of 30 s, quorum fetch timeout of 2 s."""


def create_cluster(constellation: str, folder: Path) -> tuple[Network, list[Node]]:
    """Create the network and the formatted nodes of a cluster layout. No node runs yet."""
    roles = CONSTELLATIONS[constellation]
    network = Network(range(1, len(roles) + 1))
    nodes = [Node(number, role, network, folder) for number, role in enumerate(roles, 1)]
    for each in nodes:
        each.write(nodes)
        each.format(nodes)
    return network, nodes
