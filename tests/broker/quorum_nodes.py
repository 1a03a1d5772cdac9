"""Controllers for tests: settings, directories and descriptions."""

from __future__ import annotations

import itertools
import os
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ottla.broker.controller.formatting import build_bootstrap_records, format_initial
from ottla.broker.server import Server
from ottla.broker.settings.config import BrokerConfig, read_config
from ottla.broker.settings.quorum_settings import VoterAddress
from ottla.clock import SystemClock
from ottla.errors import ErrorCode
from ottla.protocol.messages import describe_quorum
from ottla.protocol.messages.describe_quorum import DescribeQuorumRequest
from ottla.storage.directory.meta_properties import random_id
from tests.broker.wire import Wire
from tests.cli.conftest import start

CLUSTER = "b3R0bGEtcml2YWwta2Fma2"
PORT = 9093
PATIENCE = {"election.timeout": 500, "fetch.timeout": 1000, "election.backoff.max": 500, "request.timeout": 1000}
QUORUMS = itertools.count()


def new_hosts(count: int) -> list[str]:
    """Loopback addresses that no other test uses.

    Voters are configured before they listen, so their ports cannot be chosen by the system.
    """
    process, quorum = os.getpid(), next(QUORUMS)
    return [f"127.{16 + (quorum * 8 + number) % 200}.{process >> 8 & 255}.{process & 255}" for number in range(count)]


class Place:
    """One controller's settings and directory."""

    def __init__(self, folder: Path, node_id: int, host: str, **more: str) -> None:
        self.node_id = node_id
        self.address = f"{host}:{PORT}"
        self.voter = VoterAddress(node_id, host, PORT, random_id())
        self.data = folder / f"data-{node_id}"
        self.settings = {
            "process.roles": "controller",
            "node.id": str(node_id),
            "listeners": f"CONTROLLER://{self.address}",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT",
            "log.dirs": str(self.data),
            **{f"controller.quorum.{name}.ms": str(span) for name, span in PATIENCE.items()},
            **{name.replace("_", "."): value for name, value in more.items()},
        }
        self.file = folder / f"{node_id}.properties"
        self.process: subprocess.Popen[str] | None = None
        self.write()

    def write(self) -> None:
        """Its settings as they are now."""
        self.file.write_text("".join(f"{name}={value}\n" for name, value in self.settings.items()))

    def knows(self, controllers: Sequence[Place]) -> None:
        """The bootstrap addresses of the controllers."""
        self.settings["controller.quorum.bootstrap.servers"] = ",".join(each.address for each in controllers)
        self.write()

    @property
    def config(self) -> BrokerConfig:
        return read_config(self.settings)

    @property
    def log(self) -> bytes:
        return (self.data / "__cluster_metadata-0" / f"{0:020}.log").read_bytes()

    def format(self, voters: Sequence[VoterAddress], release: str | None = None) -> None:
        """Format the directory, with the feature levels of a Kafka release or of a new cluster."""
        first = build_bootstrap_records(release, {}, (), fixed_voters=False)
        format_initial(self.config, CLUSTER, voters, SystemClock(), first)

    def start(self) -> None:
        """Start the node in its own process and wait until it reports that it is ready."""
        self.process = start("broker", "--config", self.file)
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == f"ready {self.address}\n"

    def kill(self) -> None:
        """Kill -9"""
        if self.process is not None:
            self.process.kill()
            self.process.communicate()
            self.process = None

    def end(self) -> None:
        """SIGTERM, and wait until it has ended cleanly."""
        assert self.process is not None
        self.process.terminate()
        _, said = self.process.communicate(timeout=60)
        assert self.process.returncode in (0, 143), said
        self.process = None

    @contextmanager
    def serving(self) -> Iterator[Server]:
        """In a thread of this process."""
        server = Server(self.config)
        thread = threading.Thread(target=server.run)
        thread.start()
        try:
            yield server
        finally:
            server.stop()
            thread.join()

    def describe(self) -> Any:
        """Return the description of the quorum partition."""
        topic = describe_quorum.RequestTopicData("__cluster_metadata", [describe_quorum.RequestPartitionData(0)])
        with Wire(self.address) as client:
            response: Any = client.ask(DescribeQuorumRequest([topic]))
        return response.topics[0].partitions[0]

    def leads(self) -> bool:
        code: int = self.describe().error_code
        return code == ErrorCode.NONE


def leader_of(places: Sequence[Place]) -> Place | None:
    """Return the leader if all nodes name the same one and it leads."""
    said = [place.describe() for place in places]
    if len({(each.leader_id, each.leader_epoch) for each in said}) != 1:
        return None
    return next((place for place, each in zip(places, said, strict=True) if each.error_code == 0), None)


def three(folder: Path) -> list[Place]:
    """A quorum of three, formatted."""
    places = [Place(folder, number + 1, host) for number, host in enumerate(new_hosts(3))]
    for place in places:
        place.format([each.voter for each in places])
    return places
