"""Apache Kafka, started from Maven Central's jars: one node that is broker and controller.

The jars stay in `.cache/apache-kafka`; `fetch` brings them by Maven when they are not there.
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

from rivals.one_at_a_time import one_at_a_time

ROOT = Path(__file__).parent.parent
JARS = ROOT / ".cache" / "apache-kafka"
POM = Path(__file__).with_name("apache-kafka.xml")
CLUSTER_ID = "b3R0bGEtcml2YWwta2Fma2"
READY_SECONDS = 60
STOP_SECONDS = 20
HEAP = ("-Xms1G", "-Xmx1G")
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
    """Whether the jars are there."""
    return any(JARS.glob("kafka_2.13-*.jar"))


def fetch() -> None:
    """Bring the jars, unless they are there."""
    with one_at_a_time(JARS):
        if not fetched():
            bring()


def bring() -> None:
    if shutil.which("mvn") is None:
        raise RuntimeError(
            "there is no Maven (mvn) here, which fetches Apache Kafka's jars: install it, or `make interop`"
        )
    # Into a folder beside it first, so that an interrupted download is not taken for a finished one.
    part = JARS.with_suffix(".part")
    shutil.rmtree(part, ignore_errors=True)
    goal = ("dependency:copy-dependencies", f"-DoutputDirectory={part}")
    run(["mvn", "--batch-mode", "--quiet", "-f", str(POM), *goal])
    shutil.rmtree(JARS, ignore_errors=True)
    part.rename(JARS)


def java(main_class: str, *arguments: str) -> list[str]:
    """The command that runs one of Kafka's main classes, its tools for instance."""
    return ["java", "-cp", f"{JARS}/*", main_class, *arguments]


def run(command: Sequence[str]) -> str:
    """What the command prints; RuntimeError with all of it when it fails."""
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if result.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{result.stdout}")
    return result.stdout


@contextmanager
def apache_kafka(
    settings: Mapping[str, str] | None = None, *, listeners: Sequence[str] = (), formatted_with: Sequence[str] = ()
) -> Iterator[ApacheKafka]:
    """A node with an empty log directory of its own, ready; stopped at the end. `settings` are server properties.

    `listeners` are protocols that it speaks on ports of their own, beside PLAINTEXT; `formatted_with` what the tool that
    formats its directory is told as well, such as `--add-scram`.
    """
    with TemporaryDirectory(prefix="apache-kafka-") as folder:
        node = started(
            Path(folder, "logs"),
            Path(folder),
            settings,
            format_first=True,
            listeners=listeners,
            formatted_with=formatted_with,
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
) -> Iterator[ApacheKafka]:
    """A node on a log directory that is there, ready; stopped at the end. What it prints is in `folder`.

    Its quorum is what the directory says, or with `fixed_voters` what its settings do, as before Kafka 3.9.
    """
    if shutil.which("java") is None:
        raise RuntimeError("there is no Java here, which runs Apache Kafka: install Java 17 or newer, or `make java`")
    broker, controller, *others = free_ports(2 + len(listeners))
    also = {name: f"127.0.0.1:{port}" for name, port in zip(listeners, others, strict=True)}
    found = server_properties(logs, broker, controller) | dict(settings or {})
    found["listeners"] = ",".join([found["listeners"], *(f"{name}://{address}" for name, address in also.items())])
    if fixed_voters:
        found["controller.quorum.voters"] = f"1@{found.pop('controller.quorum.bootstrap.servers')}"
    properties, output = folder / "server.properties", folder / "output"
    properties.write_text(render(found))
    if format_first:
        run(
            java(
                "kafka.tools.StorageTool",
                "format",
                "--standalone",
                "-t",
                CLUSTER_ID,
                "-c",
                str(properties),
                *formatted_with,
            )
        )
    command = java("kafka.Kafka", str(properties))
    command[1:1] = [*HEAP, *FLAGS]
    with output.open("wb") as file:
        process = subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT, cwd=folder)
    try:
        wait_until_ready(process, broker, output)
        yield ApacheKafka(f"127.0.0.1:{broker}", process.pid, logs, also, f"127.0.0.1:{controller}")
    finally:
        stop(process)


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


def free_ports(count: int) -> list[int]:
    """Ports that were free a moment ago: Kafka's controller must know its own before it starts."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


def wait_until_ready(process: subprocess.Popen[bytes], port: int, output: Path) -> None:
    """Return once the broker answers; raise with what it printed when it does not."""
    deadline = time.monotonic() + READY_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        if answers(port):
            return
        time.sleep(0.1)
    raise RuntimeError(f"Apache Kafka did not start within {READY_SECONDS} s:\n{output.read_text(errors='replace')}")


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
