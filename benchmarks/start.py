"""Measure a broker without load: start time, memory, connections, and the restart after a crash.

Ours runs next to Apache Kafka (if `make interop` has fetched its jars) and kfake (if Go is installed).
"""

from __future__ import annotations

import os
import signal
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import confluent_kafka as ck
from confluent_kafka.admin import AdminClient, NewTopic

from benchmarks.brokers import Running
from benchmarks.confluent import PRODUCER, consume, fill, new_topic, settle
from benchmarks.duel import Line, report
from benchmarks.race import resident_bytes
from ottla.free_ports import free_port, free_ports
from rivals import apache_kafka as rival
from rivals import kfake as go_rival

STARTS = 5
SIZE, RECORDS, TURNS = 1024, 1_000_000, 3
"""One gigabyte per turn, and the number of turns."""
CONNECTIONS = 500
PARTITIONS = 6
READY_SECONDS = 60


class Kind(NamedTuple):
    """A broker that can be restarted with its data."""

    name: str
    prepare: Callable[[Path], tuple[list[str], int]]
    """Prepares the folder, and returns the command to start the broker and its port."""


def ottla(folder: Path) -> tuple[list[str], int]:
    """Return the command and the port of a broker, with default options."""
    port = free_port()
    data = str(folder / "data")
    return [sys.executable, "-m", "ottla.cli.main", "broker", "--listen", f"127.0.0.1:{port}", "--data-dir", data], port


def kafka(folder: Path) -> tuple[list[str], int]:
    """Return the command for a formatted directory, with the flags of Kafka's start script."""
    broker, controller = free_ports(2)
    properties = folder / "server.properties"
    properties.write_text(rival.render(rival.server_properties(folder / "logs", broker, controller)))
    rival.run(
        rival.java("kafka.tools.StorageTool", "format", "--standalone", "-t", rival.CLUSTER_ID, "-c", str(properties))
    )
    command = rival.java("kafka.Kafka", str(properties))
    command[1:1] = [*rival.HEAP, *rival.FLAGS]
    return command, broker


def kfake(folder: Path) -> tuple[list[str], int]:
    """Return the command for kfake with its own directory."""
    port = free_port()
    return go_rival.command(folder / "data", port), port


@contextmanager
def started(name: str, command: list[str], port: int, folder: Path) -> Iterator[tuple[Running, float]]:
    """Start the broker, and return it with the seconds until it responds. It is killed at the end if it still runs."""
    clock = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=folder)
    try:
        while not rival.answers(port):
            assert process.poll() is None, f"{name} ended with {process.returncode}"
            assert time.perf_counter() - clock < READY_SECONDS, f"{name} was not ready after {READY_SECONDS} s"
            time.sleep(0.002)
        yield Running(name, f"127.0.0.1:{port}", process.pid), time.perf_counter() - clock
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()


def figures(kind: Kind) -> dict[str, float]:
    """Measure all figures of one broker."""
    found = {"start to first answer, s": statistics.median(start_seconds(kind) for _ in range(STARTS))}
    with TemporaryDirectory(prefix="ottla-bench-") as text:
        folder = Path(text)
        command, port = kind.prepare(folder)
        with started(kind.name, command, port, folder) as (server, _):
            found |= memory(server)
    return found | {"ready after kill −9 with 1 GB, s": seconds_after_crash(kind)}


def start_seconds(kind: Kind) -> float:
    """Return the seconds from the command to the first response, in an empty directory."""
    with TemporaryDirectory(prefix="ottla-bench-") as text:
        command, port = kind.prepare(Path(text))
        with started(kind.name, command, port, Path(text)) as (_, span):
            return span


def memory(server: Running) -> dict[str, float]:
    """Return the resident megabytes, in the order in which they grow."""
    found = {"memory idle, MB": megabytes(server)}
    sockets = [talking(server) for _ in range(CONNECTIONS)]
    found[f"more with {CONNECTIONS} idle connections, MB"] = megabytes(server) - found["memory idle, MB"]
    for sock in sockets:
        sock.close()
    for _ in range(TURNS):
        topic = new_topic(server)
        fill(server, topic, SIZE, RECORDS)
        consume(server, topic, RECORDS)
    return found | {f"memory after {TURNS} GB in and out, MB": megabytes(server)}


def talking(server: Running) -> socket.socket:
    """Return a connection that has completed one ApiVersions request."""
    host, _, port = server.bootstrap.rpartition(":")
    sock = socket.create_connection((host, int(port)))
    sock.sendall(bytes.fromhex("0000000a0012000000000001ffff"))
    assert sock.recv(4)
    return sock


def megabytes(server: Running) -> float:
    """Return the resident memory of the broker's process."""
    return resident_bytes(server.process) / 1e6


def seconds_after_crash(kind: Kind) -> float:
    """Return the seconds from a restart after kill −9 until every partition responds, with a gigabyte of data."""
    with TemporaryDirectory(prefix="ottla-bench-") as text:
        folder = Path(text)
        command, port = kind.prepare(folder)
        with started(kind.name, command, port, folder) as (server, _):
            spread(server)
            os.kill(server.process, signal.SIGKILL)
        clock = time.perf_counter()
        with started(kind.name, command, port, folder) as (server, _):
            read_ends(server)
            return time.perf_counter() - clock


def spread(server: Running) -> None:
    """Write a gigabyte to several partitions."""
    admin = AdminClient({"bootstrap.servers": server.bootstrap})
    for done in admin.create_topics([NewTopic("crash", PARTITIONS, 1)]).values():
        done.result(30)
    producer = ck.Producer({"bootstrap.servers": server.bootstrap} | PRODUCER)
    chunk = [{"value": bytes(SIZE), "partition": 0}] * 1000
    for number in range(RECORDS // 1000):
        producer.produce_batch("crash", [record | {"partition": number % PARTITIONS} for record in chunk])
        producer.poll(0)
    settle(producer)


def read_ends(server: Running) -> None:
    """Read the end offset of each partition. Retries until the broker responds."""
    consumer = ck.Consumer({"bootstrap.servers": server.bootstrap, "group.id": "ends", "log_level": 0})
    for number in range(PARTITIONS):
        deadline = time.perf_counter() + READY_SECONDS
        while True:
            try:
                _, end = consumer.get_watermark_offsets(ck.TopicPartition("crash", number), timeout=1)
                break
            except ck.KafkaException:
                assert time.perf_counter() < deadline
        assert end > 0, f"partition {number} lost everything"
    consumer.close()


def kinds() -> list[Kind]:
    """Return ours and the available rivals."""
    found = [Kind("ottla", ottla)]
    if rival.fetched():
        found.append(Kind("Apache Kafka", kafka))
    if go_rival.can_be_had():
        go_rival.fetch()
        found.append(Kind("kfake", kfake))
    return found


def main() -> None:
    everybody = kinds()
    found = [figures(kind) for kind in everybody]
    aims = ("≤ 0.24", "≤ 40", "≤ 4", "≤ 88", "≤ 1")
    servers = [Running(kind.name, "", 0) for kind in everybody]
    lines = []
    for name, aim in zip(found[0], aims, strict=True):
        ours, *theirs = (each[name] for each in found)
        lines.append((Line(name, [ours, *theirs], [ours / each for each in theirs]), aim))
    report("what a broker costs", servers, lines)


if __name__ == "__main__":
    main()
