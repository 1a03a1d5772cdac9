"""Nodes of Apache Kafka in one cluster with ours: their settings, their directories, and their logs."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from rivals import apache_kafka as rival
from rivals.kafka_cluster import wait_for
from tests.broker.quorum_nodes import CLUSTER, PORT, Place
from tests.cli.conftest import start

BROKER_PORT = PORT + 1
LOGGING = """
appender.out.type = Console
appender.out.name = OUT
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %p %d{HH:mm:ss.SSS} %c: %m%n
rootLogger.level = INFO
rootLogger.appenderRef.out.ref = OUT
"""


class KafkaVersion(NamedTuple):
    """A version of Apache Kafka: its jars, and the release whose feature levels a cluster with its nodes must have."""

    release: str
    jars: Path


REFERENCE = KafkaVersion("4.4", rival.JARS)
PREVIOUS = KafkaVersion("4.3", rival.PREVIOUS_JARS)
VERSIONS = (REFERENCE, PREVIOUS)


def fetch(version: KafkaVersion) -> None:
    """Download the jars of a version, unless they are there."""
    if version == REFERENCE:
        rival.fetch()
    else:
        rival.fetch_previous()


def give_both_roles(place: Place, host: str) -> None:
    """Give a controller the broker role, too."""
    place.settings |= {
        "process.roles": "broker,controller",
        "listeners": f"{place.settings['listeners']},PLAINTEXT://{host}:{BROKER_PORT}",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        "broker.heartbeat.interval.ms": "200",
        "offsets.topic.num.partitions": "1",
        "offsets.topic.replication.factor": "1",
    }
    place.write()


class CombinedPlace(Place):
    """A node of ours with both roles, controller and broker."""

    def start(self) -> None:
        """Start the process, without waiting until it is ready."""
        self.process = start("broker", "--config", self.file)


class KafkaPlace(Place):
    """A node of Apache Kafka with the same settings as ours; a controller by default."""

    def __init__(
        self,
        folder: Path,
        node_id: int,
        host: str,
        controllers: Sequence[Place] = (),
        version: KafkaVersion = REFERENCE,
        **more: str,
    ) -> None:
        super().__init__(folder, node_id, host, **more)
        self.jars = version.jars
        self.knows(controllers or [self])
        self.out = folder / f"{node_id}.out"

    def is_broker_too(self, host: str) -> KafkaPlace:
        """Give the node both roles."""
        give_both_roles(self, host)
        return self

    def format_as(self, *how: str) -> None:
        """Format the directory with Kafka's own tool."""
        command = ("format", "-t", CLUSTER, "-c", str(self.file), *how)
        rival.run(rival.java("kafka.tools.StorageTool", *command, jars=self.jars))

    def start(self) -> None:
        """Start the process, without waiting until it is ready."""
        settings = self.file.with_suffix(".log4j2.properties")
        settings.write_text(LOGGING)
        command = rival.java("kafka.Kafka", str(self.file), jars=self.jars)
        command[1:1] = ["-Xmx256m", "-XX:+UseSerialGC", f"-Dlog4j2.configurationFile={settings}"]
        with self.out.open("ab") as output:
            self.process = subprocess.Popen(command, stdout=output, stderr=output, cwd=self.file.parent, text=True)

    def said(self) -> str:
        """Return the node's log output."""
        return self.out.read_text() if self.out.exists() else ""

    def complaints(self) -> list[str]:
        """Return the errors and warnings in its log.

        The message that Kafka logs for every replica moved to the node is ignored, and that about a slow machine.
        """
        lines = [line for line in self.said().splitlines() if line.startswith(("ERROR", "FATAL"))]
        ignored = "to exist, but it was missing. Creating", "EventPerformanceMonitor"
        return [line for line in lines if not any(each in line for each in ignored)]

    def wait_until_started(self) -> None:
        wait_for(lambda: "Kafka Server started" in self.said(), f"node {self.node_id} of Kafka's starts")
