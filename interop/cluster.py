"""A cluster of an Apache Kafka node that is controller and broker, and of brokers that join it: Kafka's and ours."""

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
NOT_OURS = ("--feature", "share.version=0", "--feature", "streams.version=0")
"""What a cluster of today runs and our broker does not."""
SHORT = {"broker.session.timeout.ms": "4000"}
"""Who comes again is let in when its last session is over, also after a clean end."""
UNASKED = {"auto.leader.rebalance.enable": "false"}
"""Nobody leads anew but when a test says so."""
USER, PASSWORD, STORE_PASSWORD = "cluster", "cluster-s3cret", "store-secret"
JAAS = "org.apache.kafka.common.security."
OTTLA = [sys.executable, "-m", "ottla.cli.main"]


def wait_for(
    condition: Callable[[], object], what: str | Callable[[], object] = "", patience: float = PATIENCE
) -> None:
    """`what` is said where it is not so in time; a function says how things are by then."""
    deadline = time.monotonic() + patience
    while not condition():
        assert time.monotonic() < deadline, what if isinstance(what, str) else what()
        time.sleep(0.02)


def image_of(log: Path) -> ClusterMetadata:
    """What the records of a log make."""
    columns = decode(log.read_bytes())
    machine = ClusterMetadata()
    for row in range(columns.count):
        machine.replay(decode_record(columns.value(row) or b""))
    machine.check()
    return machine


@cache
def security() -> Mapping[str, str]:
    """How controllers and brokers of the cluster come to each other: nobody reads along, everybody logs in."""
    folder = Path(tempfile.mkdtemp(prefix="cluster-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    authority = Authority(folder)
    store = folder / "node.p12"
    store.write_bytes(authority.certificate().pkcs12(STORE_PASSWORD))
    who = f'required username="{USER}" password="{PASSWORD}"'
    plain = f'{JAAS}plain.PlainLoginModule {who} user_{USER}="{PASSWORD}";'
    return {
        "listener.security.protocol.map": "CONTROLLER:SASL_SSL,PLAINTEXT:PLAINTEXT,INTERNAL:SASL_SSL",
        "inter.broker.listener.name": "INTERNAL",
        "sasl.mechanism.controller.protocol": "PLAIN",
        "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512",
        "listener.name.controller.sasl.enabled.mechanisms": "PLAIN",
        "listener.name.controller.plain.sasl.jaas.config": plain,
        "listener.name.internal.sasl.enabled.mechanisms": "SCRAM-SHA-512",
        "listener.name.internal.scram-sha-512.sasl.jaas.config": f"{JAAS}scram.ScramLoginModule {who};",
        "delegation.token.secret.key": "cluster-s3cret-of-tokens",
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.location": str(store),
        "ssl.keystore.password": STORE_PASSWORD,
        "ssl.key.password": STORE_PASSWORD,
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": authority.file,
    }


@contextmanager
def kafka_node() -> Iterator[ApacheKafka]:
    """The node that is controller and broker."""
    rival.fetch()
    formatted_with = (*NOT_OURS, "--add-scram", f"SCRAM-SHA-512=[name={USER},password={PASSWORD}]")
    with rival.apache_kafka(
        SHORT | UNASKED | dict(security()), listeners=("INTERNAL",), formatted_with=formatted_with
    ) as kafka:
        yield kafka


def settings_of(node_id: int, kafka: ApacheKafka, folder: Path, port: int = 0) -> dict[str, str]:
    """A broker of the cluster, in Kafka's words."""
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
    """The same settings, whose directory is made ready, as Kafka reads it too."""
    command = [*OTTLA, "storage", "format", "-t", CLUSTER_ID, "-c", str(properties), "--no-initial-controllers"]
    subprocess.run(command, check=True, capture_output=True, timeout=PATIENCE)
    return properties


class Node:
    """A broker that joins, in a process of its own; it can be killed and started again."""

    command: tuple[str, ...] = ()
    """What is called with the file of its settings."""

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
        """Under which it was let in before its last start."""

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
        self._last_epoch = self._epoch_if_let_in()
        with self._output.open("ab") as output:
            self._process = subprocess.Popen([*self.command, str(self._properties)], stdout=output, stderr=output)

    def wait_until_in(self) -> None:
        """Until the controllers have let it in, in this life: of the last one they may not have heard yet that it is over."""

        def is_in() -> bool:
            assert self._process is not None
            assert self._process.poll() is None, self._output.read_text(errors="replace")[-3000:]
            return self._epoch_if_let_in() > self._last_epoch and listens(self.port)

        wait_for(is_in, lambda: f"{self.node_id} is not let in: {self.output[-3000:]}")

    def _epoch_if_let_in(self) -> int:
        registration = image_of(self._kafka.directory / LOG).registrations.get(self.node_id)
        return -1 if registration is None or registration.fenced else registration.epoch

    def kill(self) -> None:
        """As when the power of its process goes."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def freeze(self) -> None:
        """Until `thaw` it does nothing; it stops when one of its threads hears of it, which may take a busy machine a while."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)
        tasks = Path(f"/proc/{self.process_id}/task")
        wait_for(lambda: all("State:\tT" in (task / "status").read_text() for task in tasks.iterdir()), "it runs on")

    def thaw(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def stop(self) -> int:
        """Have it hand over and end; its status."""
        assert self._process is not None
        self._process.terminate()
        try:
            return self._process.wait(PATIENCE)
        finally:
            self._process.kill()
            self._process.wait()

    def lose_disk(self) -> None:
        """A new one, made ready, is in its place."""
        shutil.rmtree(self.data)
        formatted(self._properties)

    def log(self, partition: str) -> bytes:
        """The bytes of a partition's segments, one after the other."""
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
    """What the controllers say, by the log that they keep."""

    def __init__(self, kafka: ApacheKafka) -> None:
        self._log = kafka.directory / LOG

    def state(self, topic: str, partition: int = 0) -> PartitionState | None:
        found = image_of(self._log).topics.get(topic)
        return None if found is None or len(found.partitions) <= partition else found.partitions[partition]

    def told(self, topics: Sequence[str]) -> str:
        """Who leads them, and who is let in, for a person."""
        image = image_of(self._log)
        brokers = {id_: "fenced" if each.fenced else "in" for id_, each in image.registrations.items()}
        return f"{brokers}; {[(topic, self.state(topic)) for topic in topics]}"

    def in_sync(self, topic: str) -> set[int]:
        state = self.state(topic)
        return set() if state is None else set(state.isr)

    def leader(self, topic: str) -> int:
        state = self.state(topic)
        return -1 if state is None else state.leader
