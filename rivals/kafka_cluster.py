"""A cluster of one Apache Kafka node, controller and broker in one, and of further brokers: Kafka's and Ottla's.

Used by `interop/`, `benchmarks/` and `examples/grow/`.
"""

from __future__ import annotations

import atexit
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import MappingProxyType

from ottla.coordination.cluster.metadata import ClusterMetadata
from ottla.coordination.cluster.records import decode_record
from ottla.coordination.cluster.topic import PartitionState
from ottla.free_ports import free_port
from ottla.records.columns import decode
from rivals import apache_kafka as rival
from rivals.apache_kafka import CLUSTER_ID, ApacheKafka, listens
from tests.certificates import Authority

PATIENCE = 90.0
LOG = Path("__cluster_metadata-0", "00000000000000000000.log")
SHORT = {"broker.session.timeout.ms": "4000"}
"""A broker that restarts is unfenced after its last session has expired, also after a clean shutdown."""
NO_AUTOMATIC_ELECTIONS = {"auto.leader.rebalance.enable": "false"}
"""Preferred leaders are elected only when a test requests it."""
USER, PASSWORD, STORE_PASSWORD = "cluster", "cluster-s3cret", "store-secret"
JAAS = "org.apache.kafka.common.security."
OTTLA = [sys.executable, "-m", "ottla.cli.main"]


def wait_for(
    condition: Callable[[], object], what: str | Callable[[], object] = "", patience: float = PATIENCE
) -> None:
    """Wait for `condition`. Fail with `what` after `patience` seconds; a function is called for the text at that time."""
    deadline = time.monotonic() + patience
    while not condition():
        assert time.monotonic() < deadline, what if isinstance(what, str) else what()
        time.sleep(0.02)


def image_of(log: Path) -> ClusterMetadata:
    """Replay a metadata log and return the image."""
    columns = decode(log.read_bytes())
    machine = ClusterMetadata()
    for row in range(columns.count):
        machine.replay(decode_record(columns.value(row) or b""))
    machine.check()
    return machine


@cache
def security() -> Mapping[str, str]:
    """Settings for connections between nodes: TLS, and SASL for controllers and brokers."""
    folder = Path(tempfile.mkdtemp(prefix="cluster-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    authority = Authority(folder)
    store = folder / "node.p12"
    store.write_bytes(authority.certificate().pkcs12(STORE_PASSWORD))
    login = f'required username="{USER}" password="{PASSWORD}"'
    plain = f'{JAAS}plain.PlainLoginModule {login} user_{USER}="{PASSWORD}";'
    return {
        "listener.security.protocol.map": "CONTROLLER:SASL_SSL,PLAINTEXT:PLAINTEXT,INTERNAL:SASL_SSL",
        "inter.broker.listener.name": "INTERNAL",
        "sasl.mechanism.controller.protocol": "PLAIN",
        "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512",
        "listener.name.controller.sasl.enabled.mechanisms": "PLAIN",
        "listener.name.controller.plain.sasl.jaas.config": plain,
        "listener.name.internal.sasl.enabled.mechanisms": "SCRAM-SHA-512",
        "listener.name.internal.scram-sha-512.sasl.jaas.config": f"{JAAS}scram.ScramLoginModule {login};",
        "delegation.token.secret.key": "cluster-s3cret-of-tokens",
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.location": str(store),
        "ssl.keystore.password": STORE_PASSWORD,
        "ssl.key.password": STORE_PASSWORD,
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": authority.file,
    }


@contextmanager
def kafka_node(jars: Path | None = None) -> Iterator[ApacheKafka]:
    """Run the Kafka node that is controller and broker; `jars` are those of another version than the reference."""
    if jars is None:
        rival.fetch()
    formatted_with = ("--add-scram", f"SCRAM-SHA-512=[name={USER},password={PASSWORD}]")
    with rival.apache_kafka(
        SHORT | NO_AUTOMATIC_ELECTIONS | dict(security()),
        listeners=("INTERNAL",),
        formatted_with=formatted_with,
        jars=jars,
    ) as kafka:
        yield kafka


def settings_of(node_id: int, kafka: ApacheKafka, folder: Path, port: int = 0) -> dict[str, str]:
    """Return the settings of a broker of the cluster, under Kafka's names."""
    return {
        "process.roles": "broker",
        "node.id": str(node_id),
        "controller.quorum.bootstrap.servers": kafka.controller,
        "controller.listener.names": "CONTROLLER",
        "listeners": f"PLAINTEXT://127.0.0.1:{port},INTERNAL://127.0.0.1:{free_port()}",
        "broker.heartbeat.interval.ms": "500",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "log.dirs": str(folder / "data"),
        **security(),
    }


def formatted(properties: Path) -> Path:
    """Format the log directory of a settings file, and return the file. Kafka reads such directories too."""
    command = [*OTTLA, "storage", "format", "-t", CLUSTER_ID, "-c", str(properties), "--no-initial-controllers"]
    subprocess.run(command, check=True, capture_output=True, timeout=PATIENCE)
    return properties


class Node:
    """A broker that joins the cluster, in a process of its own; it can be killed and restarted."""

    command: tuple[str, ...] = ()
    """The program and its arguments before the settings file."""

    def __init__(
        self, node_id: int, kafka: ApacheKafka, folder: Path, settings: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        self.node_id = node_id
        self.data = folder / "data"
        self.port = free_port()
        self._kafka = kafka
        self._output = folder / "output"
        self._properties = folder / "server.properties"
        self._properties.write_text(rival.render(settings_of(node_id, kafka, folder, self.port) | dict(settings)))
        formatted(self._properties)
        self._process: subprocess.Popen[bytes] | None = None
        self._last_epoch = -1
        """The broker epoch before the last start, or -1."""

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def process_id(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        self._last_epoch = self._epoch_if_unfenced()
        with self._output.open("ab") as output:
            self._process = subprocess.Popen([*self.command, str(self._properties)], stdout=output, stderr=output)

    def wait_until_in(self) -> None:
        """Wait until this start of the broker is unfenced. Its previous registration may still be in the log."""

        def is_unfenced() -> bool:
            assert self._process is not None
            assert self._process.poll() is None, self._output.read_text(errors="replace")[-3000:]
            return self._epoch_if_unfenced() > self._last_epoch and listens(self.port)

        wait_for(is_unfenced, lambda: f"{self.node_id} is still fenced: {self.output[-3000:]}")

    def _epoch_if_unfenced(self) -> int:
        registration = image_of(self._kafka.directory / LOG).registrations.get(self.node_id)
        return -1 if registration is None or registration.fenced else registration.epoch

    def kill(self) -> None:
        """Kill the process."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def freeze(self) -> None:
        """Stop the process until `thaw`, and wait until each of its threads has stopped."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)
        tasks = Path(f"/proc/{self.process_id}/task")
        wait_for(lambda: all("State:\tT" in (task / "status").read_text() for task in tasks.iterdir()), "it runs on")

    def thaw(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def stop(self) -> int:
        """Shut the broker down cleanly, and return its exit status."""
        assert self._process is not None
        self._process.terminate()
        try:
            return self._process.wait(PATIENCE)
        finally:
            self._process.kill()
            self._process.wait()

    def lose_disk(self) -> None:
        """Replace the data directory with an empty, formatted one."""
        shutil.rmtree(self.data)
        formatted(self._properties)

    def log(self, partition: str) -> bytes:
        """Return the bytes of all segments of a partition."""
        folder = self.data / partition
        return b"".join(path.read_bytes() for path in sorted(folder.glob("*.log")))

    @property
    def output(self) -> str:
        return self._output.read_text(errors="replace")


class OttlaNode(Node):
    command = (*OTTLA, "broker", "--config")


class KafkaNode(Node):
    command = ("java", "-Xmx256M", *rival.FLAGS, *rival.java("kafka.Kafka")[1:])


class View:
    """The cluster's metadata, read from the controller's log."""

    def __init__(self, kafka: ApacheKafka) -> None:
        self._log = kafka.directory / LOG

    def state(self, topic: str, partition: int = 0) -> PartitionState | None:
        found = image_of(self._log).topics.get(topic)
        return None if found is None or len(found.partitions) <= partition else found.partitions[partition]

    def describe(self, topics: Sequence[str]) -> str:
        """Return the brokers' states and the partitions' states as text for an error."""
        image = image_of(self._log)
        brokers = {id_: "fenced" if each.fenced else "in" for id_, each in image.registrations.items()}
        return f"{brokers}; {[(topic, self.state(topic)) for topic in topics]}"

    def in_sync(self, topic: str) -> set[int]:
        state = self.state(topic)
        return set() if state is None else set(state.isr)

    def leader(self, topic: str) -> int:
        state = self.state(topic)
        return -1 if state is None else state.leader
