"""Apache Kafka, started from Maven Central's jars: one node that is broker and controller.

The jars stay in `.cache`, one folder for each version; `fetch` brings them by Maven when they are not there.
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
"""The version before it, for clusters in which a node is older than the others."""
JARS = ROOT / ".cache" / f"apache-kafka-{VERSION}"
PREVIOUS_JARS = ROOT / ".cache" / f"apache-kafka-{PREVIOUS_VERSION}"
POM = Path(__file__).with_name("apache-kafka.xml")
STREAMS_JARS = ROOT / ".cache" / "kafka-streams"
CLUSTER_ID = "b3R0bGEtcml2YWwta2Fma2"
READY_SECONDS = 180
STOP_SECONDS = 20
START_TRIES = 3
OWN_END = 1
"""The status with which it ends when it cannot go on; 143 and such are somebody's signals."""
HEAP = ("-Xms1G", "-Xmx1G")
options: tuple[str, ...] = ()
"""Of every Java that is started from here; tests want it ready soon, and benchmarks as it is."""
FLAGS = (
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-XX:MaxInlineLevel=15",
    "-Djava.awt.headless=true",
)
"""What Kafka's own start script gives the JVM."""


class ApacheKafka(NamedTuple):
    """A running Apache Kafka."""

    bootstrap_servers: str
    process: int
    directory: Path
    """Its log directory."""
    listeners: Mapping[str, str] = MappingProxyType({})
    """The addresses of those it was asked for beside the plain one, by their names."""
    controller: str = ""
    """Where brokers find it as a controller."""


def fetched() -> bool:
    """Return True if the jars of the reference version are there."""
    return any(JARS.glob("kafka_2.13-*.jar"))


def fetch() -> None:
    """Download the jars of the reference version, unless they are there."""
    fetch_version(VERSION, JARS)


def fetch_previous() -> None:
    """Download the jars of the previous version, unless they are there."""
    fetch_version(PREVIOUS_VERSION, PREVIOUS_JARS)


def fetch_version(version: str, jars: Path) -> None:
    """Download the jars of a version into a folder, unless they are there."""
    with one_at_a_time(jars):
        if not any(jars.glob("kafka_2.13-*.jar")):
            bring(POM, jars, f"-Dkafka.version={version}")


def fetch_streams() -> Path:
    """Return the folder with the jars of Kafka Streams, downloaded unless they are there."""
    with one_at_a_time(STREAMS_JARS):
        if not any(STREAMS_JARS.glob("kafka-streams-*.jar")):
            bring(POM.with_name("kafka-streams.xml"), STREAMS_JARS)
    return STREAMS_JARS


def bring(pom: Path, jars: Path, *options: str) -> None:
    """Have all that a project of Maven's depends on in a folder."""
    if shutil.which("mvn") is None:
        raise RuntimeError(
            f"there is no Maven (mvn) here, which fetches the jars of {jars.name}: install it, or `make interop`"
        )
    # Into a folder beside it first, so that an interrupted download is not taken for a finished one.
    part = jars.with_suffix(".part")
    shutil.rmtree(part, ignore_errors=True)
    goal = ("dependency:copy-dependencies", f"-DoutputDirectory={part}")
    run(["mvn", "--batch-mode", "--quiet", "-f", str(pom), *options, *goal])
    shutil.rmtree(jars, ignore_errors=True)
    part.rename(jars)


def java(main_class: str, *arguments: str, classes: str = "", jars: Path | None = None) -> list[str]:
    """The command that runs one of Kafka's main classes, its tools for instance; or one in the folder `classes`."""
    path = f"{jars or JARS}/*"
    return ["java", *options, "-cp", f"{path}:{classes}" if classes else path, main_class, *arguments]


def run(command: Sequence[str]) -> str:
    """What the command prints; RuntimeError with all of it when it fails."""
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
    """A node with an empty log directory of its own, ready; stopped at the end. `settings` are server properties.

    `listeners` are protocols that it speaks on ports of their own, beside PLAINTEXT; `formatted_with` what the tool that
    formats its directory is told as well, such as `--add-scram`; `jars` another version than that of `JARS`.
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
    """A node on a log directory that is there, ready; stopped at the end. What it prints is in `folder`.

    Its quorum is what the directory says, or with `fixed_voters` what its settings do, as before Kafka 3.9.
    """
    if shutil.which("java") is None:
        raise RuntimeError("there is no Java here, which runs Apache Kafka: install Java 17 or newer, or `make java`")
    ports = new_ports(listeners)
    plan = Plan(folder, logs, settings or {}, fixed_voters, jars, tuple(heap))
    if format_first:
        plan.format(ports, formatted_with)
    process, ports = plan.launched(ports)
    try:
        yield ports.address_book(process.pid, logs)
        if process.poll() == OWN_END:
            raise RuntimeError(f"Apache Kafka ended by itself:\n{plan.printed()[-5000:]}")
    finally:
        stop(process)


class StartError(RuntimeError):
    """It did not start."""


class Ports(NamedTuple):
    """Where a node listens."""

    broker: int
    controller: int
    others: Mapping[str, int]
    """Of the protocols it speaks beside PLAINTEXT."""

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
    """A node that is to start, wherever there are ports for it."""

    folder: Path
    logs: Path
    settings: Mapping[str, str]
    fixed_voters: bool
    jars: Path | None = None
    heap: tuple[str, ...] = HEAP

    def format(self, ports: Ports, more: Sequence[str]) -> None:
        """Make its directory ready."""
        given = ("--standalone", "-t", CLUSTER_ID, "-c", str(self._write(ports)), *more)
        run(java("kafka.tools.StorageTool", "format", *given, jars=self.jars))

    def launched(self, ports: Ports) -> tuple[subprocess.Popen[bytes], Ports]:
        """It, ready. If it ends at once, as when somebody has taken one of its ports, it is tried on others."""
        for tries_left in reversed(range(START_TRIES)):
            process = self._begun(ports)
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

    def _begun(self, ports: Ports) -> subprocess.Popen[bytes]:
        command = java("kafka.Kafka", str(self._write(ports)), jars=self.jars)
        command[1:1] = [*self.heap, *FLAGS]
        with (self.folder / "output").open("wb") as file:
            return subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT, cwd=self.folder)

    def _wait_until_ready(self, process: subprocess.Popen[bytes], ports: Ports) -> None:
        """It opens its ports one after the other, and ends when one of them is somebody else's."""
        deadline = time.monotonic() + READY_SECONDS
        while process.poll() is None and time.monotonic() < deadline:
            if all(map(listens, ports.all)) and answers(ports.broker):
                return
            time.sleep(0.1)
        raise StartError(f"Apache Kafka did not start within {READY_SECONDS} s:\n{self.printed()}")


def server_properties(logs: Path, broker: int, controller: int) -> dict[str, str]:
    """A single node that is content with itself."""
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
    """A Java properties file."""
    return "".join(f"{name}={value}\n" for name, value in properties.items())


def listens(port: int) -> bool:
    """Whether somebody takes connections there."""
    try:
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
    except OSError:
        return False
    return True


def answers(port: int) -> bool:
    """Whether a Kafka on this port tells what it speaks (ApiVersions 0)."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=5) as sock:
            sock.sendall(struct.pack(">ihhih", 10, 18, 0, 1, -1))
            return len(sock.recv(4)) == 4
    except OSError:
        return False


def stop(process: subprocess.Popen[bytes]) -> None:
    """End it; kill it when it does not."""
    process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
