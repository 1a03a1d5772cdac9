"""Apache Kafka, started from Maven Central's jars: one node that is broker and controller.

The jars are kept in `.cache`, one folder for each version; `fetch` downloads missing ones with Maven.
"""

from __future__ import annotations

import shutil
import socket
import struct
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import NamedTuple

from ottla.free_ports import free_ports
from rivals.one_at_a_time import one_at_a_time

ROOT = Path(__file__).parent.parent
VERSION = "4.4.0"
"""The reference: tests compare with this version unless they name another one."""
PREVIOUS_VERSION = "4.3.1"
"""The previous version, for clusters in which one node is older than the others."""
JARS = ROOT / ".cache" / f"apache-kafka-{VERSION}"
PREVIOUS_JARS = ROOT / ".cache" / f"apache-kafka-{PREVIOUS_VERSION}"
POM = Path(__file__).with_name("apache-kafka.xml")
STREAMS_JARS = ROOT / ".cache" / "kafka-streams"
CLUSTER_ID = "b3R0bGEtcml2YWwta2Fma2"
READY_SECONDS = 180
STOP_SECONDS = 20
START_TRIES = 3
OWN_END = 1
"""The exit status after a fatal error. Statuses such as 143 come from signals."""
HEAP = ("-Xms1G", "-Xmx1G")
options: tuple[str, ...] = ()
"""Options of each Java that this module starts: tests set them for a fast start, benchmarks use the defaults."""
FLAGS = (
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-XX:MaxInlineLevel=15",
    "-Djava.awt.headless=true",
)
"""The JVM options of Kafka's own start script."""


class ApacheKafka(NamedTuple):
    """A running Apache Kafka."""

    bootstrap_servers: str
    process: int
    directory: Path
    """Its log directory."""
    listeners: Mapping[str, str] = MappingProxyType({})
    """The addresses of the additional listeners, by name."""
    controller: str = ""
    """Its address as a controller."""


def fetched() -> bool:
    """Return True if the jars of the reference version exist."""
    return any(JARS.glob("kafka_2.13-*.jar"))


def fetch() -> None:
    """Download the jars of the reference version unless they exist."""
    fetch_version(VERSION, JARS)


def fetch_previous() -> None:
    """Download the jars of the previous version unless they exist."""
    fetch_version(PREVIOUS_VERSION, PREVIOUS_JARS)


def fetch_version(version: str, jars: Path) -> None:
    """Download the jars of a version into a folder unless they exist."""
    with one_at_a_time(jars):
        if not any(jars.glob("kafka_2.13-*.jar")):
            bring(POM, jars, f"-Dkafka.version={version}")


def fetch_streams() -> Path:
    """Return the folder with the jars of Kafka Streams; download them unless they exist."""
    with one_at_a_time(STREAMS_JARS):
        if not any(STREAMS_JARS.glob("kafka-streams-*.jar")):
            bring(POM.with_name("kafka-streams.xml"), STREAMS_JARS)
    return STREAMS_JARS


def bring(pom: Path, jars: Path, *options: str) -> None:
    """Download all dependencies of a Maven project into a folder."""
    if shutil.which("mvn") is None:
        raise RuntimeError(
            f"mvn not found, which downloads the jars of {jars.name}: install Maven, or run `make interop-needs`"
        )
    # Into another folder first, so that an interrupted download does not look complete.
    part = jars.with_suffix(".part")
    shutil.rmtree(part, ignore_errors=True)
    goal = ("dependency:copy-dependencies", f"-DoutputDirectory={part}")
    run(["mvn", "--batch-mode", "--quiet", "-f", str(pom), *options, *goal])
    shutil.rmtree(jars, ignore_errors=True)
    part.rename(jars)


def java(main_class: str, *arguments: str, classes: str = "", jars: Path | None = None) -> list[str]:
    """Return the command that runs a main class of Kafka, such as a tool, or one in the folder `classes`."""
    path = f"{jars or JARS}/*"
    return ["java", *options, "-cp", f"{path}:{classes}" if classes else path, main_class, *arguments]


def run(command: Sequence[str]) -> str:
    """Run a command and return its output. Raises RuntimeError with the output if it fails."""
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if result.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{result.stdout}")
    return result.stdout


@contextmanager
def apache_kafka(
    settings: Mapping[str, str] | None = None,
    *,
    listeners: Sequence[str] = (),
    formatted_with: Sequence[str] = (),
    jars: Path | None = None,
    heap: Sequence[str] = HEAP,
) -> Iterator[ApacheKafka]:
    """Run a node with a new log directory; it is stopped at the end. `settings` are server properties.

    `listeners` are the protocols of additional listeners, each on a port of its own; `formatted_with` has further
    arguments for the tool that formats the directory, such as `--add-scram`; `jars` is the folder of another version.
    """
    with TemporaryDirectory(prefix="apache-kafka-") as folder:
        node = started(
            Path(folder, "logs"),
            Path(folder),
            settings,
            format_first=True,
            listeners=listeners,
            formatted_with=formatted_with,
            jars=jars,
            heap=heap,
        )
        with node as kafka:
            yield kafka


@contextmanager
def started(
    logs: Path,
    folder: Path,
    settings: Mapping[str, str] | None = None,
    *,
    format_first: bool = False,
    fixed_voters: bool = False,
    listeners: Sequence[str] = (),
    formatted_with: Sequence[str] = (),
    jars: Path | None = None,
    heap: Sequence[str] = HEAP,
) -> Iterator[ApacheKafka]:
    """Run a node on an existing log directory; it is stopped at the end. Its output is in `folder`.

    The voters are those in the directory, or with `fixed_voters` those of its settings, as before Kafka 3.9.
    """
    if shutil.which("java") is None:
        raise RuntimeError("java not found, which runs Apache Kafka: install Java 17 or newer, or run `make java`")
    ports = new_ports(listeners)
    plan = Plan(folder, logs, settings or {}, fixed_voters, jars, tuple(heap))
    if format_first:
        plan.format(ports, formatted_with)
    process, ports = plan.start_ready(ports)
    try:
        yield ports.address_book(process.pid, logs)
        if process.poll() == OWN_END:
            raise RuntimeError(f"Apache Kafka ended by itself:\n{plan.printed()[-5000:]}")
    finally:
        stop(process)


class StartError(RuntimeError):
    """The node did not start."""


class Ports(NamedTuple):
    """The ports of a node."""

    broker: int
    controller: int
    others: Mapping[str, int]
    """The ports of additional listeners, by protocol."""

    @property
    def all(self) -> tuple[int, ...]:
        return self.broker, self.controller, *self.others.values()

    def address_book(self, process: int, logs: Path) -> ApacheKafka:
        others = {name: at(port) for name, port in self.others.items()}
        return ApacheKafka(at(self.broker), process, logs, others, at(self.controller))


def new_ports(listeners: Sequence[str]) -> Ports:
    broker, controller, *others = free_ports(2 + len(listeners))
    return Ports(broker, controller, dict(zip(listeners, others, strict=True)))


def at(port: int) -> str:
    return f"127.0.0.1:{port}"


class Plan(NamedTuple):
    """A node to start on any free ports."""

    folder: Path
    logs: Path
    settings: Mapping[str, str]
    fixed_voters: bool
    jars: Path | None = None
    heap: tuple[str, ...] = HEAP

    def format(self, ports: Ports, more: Sequence[str]) -> None:
        """Format its directory."""
        given = ("--standalone", "-t", CLUSTER_ID, "-c", str(self._write(ports)), *more)
        run(java("kafka.tools.StorageTool", "format", *given, jars=self.jars))

    def start_ready(self, ports: Ports) -> tuple[subprocess.Popen[bytes], Ports]:
        """Start the node and wait until it is ready. If a port is taken meanwhile, it is retried on other ports."""
        for tries_left in reversed(range(START_TRIES)):
            process = self._start(ports)
            try:
                self._wait_until_ready(process, ports)
            except StartError:
                stop(process)
                if not tries_left:
                    raise
                ports = new_ports(tuple(ports.others))
            else:
                break
        return process, ports

    def printed(self) -> str:
        return (self.folder / "output").read_text(errors="replace")

    def _write(self, ports: Ports) -> Path:
        found = server_properties(self.logs, ports.broker, ports.controller) | dict(self.settings)
        others = (f"{name}://{at(port)}" for name, port in ports.others.items())
        found["listeners"] = ",".join([found["listeners"], *others])
        if self.fixed_voters:
            found["controller.quorum.voters"] = f"1@{found.pop('controller.quorum.bootstrap.servers')}"
        path = self.folder / "server.properties"
        path.write_text(render(found))
        return path

    def _start(self, ports: Ports) -> subprocess.Popen[bytes]:
        command = java("kafka.Kafka", str(self._write(ports)), jars=self.jars)
        command[1:1] = [*self.heap, *FLAGS]
        with (self.folder / "output").open("wb") as file:
            return subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT, cwd=self.folder)

    def _wait_until_ready(self, process: subprocess.Popen[bytes], ports: Ports) -> None:
        """Wait for all ports: the node opens them in turn, and exits if another process has one of them."""
        deadline = time.monotonic() + READY_SECONDS
        while process.poll() is None and time.monotonic() < deadline:
            if all(map(listens, ports.all)) and answers(ports.broker):
                return
            time.sleep(0.1)
        raise StartError(f"Apache Kafka did not start within {READY_SECONDS} s:\n{self.printed()}")


def server_properties(logs: Path, broker: int, controller: int) -> dict[str, str]:
    """Return the properties of a single node without replicas of internal topics."""
    alone = (
        "offsets.topic.replication.factor",
        "transaction.state.log.replication.factor",
        "transaction.state.log.min.isr",
        "share.coordinator.state.topic.replication.factor",
        "share.coordinator.state.topic.min.isr",
    )
    return {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.bootstrap.servers": f"127.0.0.1:{controller}",
        "listeners": f"PLAINTEXT://127.0.0.1:{broker},CONTROLLER://127.0.0.1:{controller}",
        "controller.listener.names": "CONTROLLER",
        "log.dirs": str(logs),
        "group.initial.rebalance.delay.ms": "0",
        **dict.fromkeys(alone, "1"),
    }


def render(properties: Mapping[str, str]) -> str:
    """Return the text of a Java properties file."""
    return "".join(f"{name}={value}\n" for name, value in properties.items())


def listens(port: int) -> bool:
    """Return True if a process accepts connections on the port."""
    try:
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
    except OSError:
        return False
    return True


def answers(port: int) -> bool:
    """Return True if a Kafka on this port answers ApiVersions 0."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=5) as sock:
            sock.sendall(struct.pack(">ihhih", 10, 18, 0, 1, -1))
            return len(sock.recv(4)) == 4
    except OSError:
        return False


def stop(process: subprocess.Popen[bytes]) -> None:
    """Terminate the process, or kill it after STOP_SECONDS."""
    process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
