"""Measure many partitions, next to Apache Kafka if its jars are present (`make interop`), and kfake if Go is
installed.

Topics of one partition are created in one request, and each receives one record. Then the broker idles, stops, starts
again, is killed and starts again. All servers are measured by the same client with plain sockets. Apache Kafka has its
default heap.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import psutil
from rich.table import Table

from benchmarks.race import show
from ottla.free_ports import free_ports
from ottla.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from rivals import apache_kafka as rival
from rivals import kfake as go_rival
from tests.broker.wire import Wire, batch, produce

TOPICS = int(os.environ.get("TOPICS", "2000"))
IDLE_SECONDS = 10.0
PATIENCE = 120.0


class Started(NamedTuple):
    """A broker's process and its address."""

    process: subprocess.Popen[str]
    address: str
    seconds: float


Start = Callable[[], Started]


@contextmanager
def ottla(folder: Path) -> Iterator[Start]:
    """Start `ottla broker` on one directory."""
    command = [sys.executable, "-m", "ottla.cli.main", "broker", "--listen", "127.0.0.1:0", "--data-dir", str(folder)]

    def start() -> Started:
        clock = time.perf_counter()
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        address = process.stdout.readline().split()[-1]
        return Started(process, address, time.perf_counter() - clock)

    yield start


@contextmanager
def apache_kafka(folder: Path) -> Iterator[Start]:
    """Start Apache Kafka on one directory."""
    broker, controller = free_ports(2)
    properties = folder / "server.properties"
    properties.write_text(rival.render(rival.server_properties(folder / "logs", broker, controller)))
    rival.run(
        rival.java("kafka.tools.StorageTool", "format", "--standalone", "-t", rival.CLUSTER_ID, "-c", str(properties))
    )
    command = rival.java("kafka.Kafka", str(properties))
    command[1:1] = [*rival.HEAP, *rival.FLAGS]

    def start() -> Started:
        clock = time.perf_counter()
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, text=True, cwd=folder)
        while not rival.answers(broker):
            time.sleep(0.02)
        return Started(process, f"127.0.0.1:{broker}", time.perf_counter() - clock)

    yield start


@contextmanager
def kfake(folder: Path) -> Iterator[Start]:
    """Start kfake on one directory."""

    def start() -> Started:
        clock = time.perf_counter()
        process = subprocess.Popen(go_rival.command(folder / "data"), stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        return Started(process, address, time.perf_counter() - clock)

    yield start


def cpu_seconds(process: subprocess.Popen[str]) -> float:
    times = psutil.Process(process.pid).cpu_times()
    return times.user + times.system


def kilobytes(process: subprocess.Popen[str]) -> float:
    return psutil.Process(process.pid).memory_info().rss / 1024


def write_each(wire: Wire) -> None:
    """Write one record to every partition, and retry while a partition has no leader."""
    data = batch([b"x" * 100])
    for number in range(TOPICS):
        deadline = time.perf_counter() + PATIENCE
        while wire.ask(produce(f"topic-{number}", data), 11).responses[0].partition_responses[0].error_code:
            assert time.perf_counter() < deadline
            time.sleep(0.01)


def led(wire: Wire) -> None:
    """Return when the last partition accepts records."""
    data, deadline = batch([b"x"]), time.perf_counter() + PATIENCE
    while wire.ask(produce(f"topic-{TOPICS - 1}", data), 11).responses[0].partition_responses[0].error_code:
        assert time.perf_counter() < deadline
        time.sleep(0.005)


def ready(started: Started) -> float:
    """Return the seconds from the start until the last partition accepts records."""
    clock = time.perf_counter()
    with Wire(started.address) as wire:
        led(wire)
    return started.seconds + time.perf_counter() - clock


def stop(process: subprocess.Popen[str], number: int = signal.SIGTERM) -> float:
    clock = time.perf_counter()
    process.send_signal(number)
    process.wait(PATIENCE)
    return time.perf_counter() - clock


def measure(start: Start) -> dict[str, str]:
    """Measure all figures of one broker."""
    figures = {}
    first = start()
    with Wire(first.address) as wire:
        before, clock = kilobytes(first.process), time.perf_counter()
        request = CreateTopicsRequest([CreatableTopic(f"topic-{n}", 1, 1) for n in range(TOPICS)], timeout_ms=100_000)
        assert not any(topic.error_code for topic in wire.ask(request, 6).topics)
        figures["made, as answered"] = f"{time.perf_counter() - clock:.2f} s"
        led(wire)
        figures["made and led"] = f"{time.perf_counter() - clock:.2f} s"
        figures["memory for each"] = f"{(kilobytes(first.process) - before) / TOPICS:.1f} KB"
        write_each(wire)
        figures["memory for each, written"] = f"{(kilobytes(first.process) - before) / TOPICS:.1f} KB"
        used = cpu_seconds(first.process)
        time.sleep(IDLE_SECONDS)
        figures["idle"] = f"{(cpu_seconds(first.process) - used) / IDLE_SECONDS:.3f} cores"
    figures["clean shutdown"] = f"{stop(first.process):.2f} s"
    second = start()
    figures["clean restart, to the first record"] = f"{ready(second):.2f} s"
    stop(second.process, signal.SIGKILL)
    third = start()
    figures["restart after kill -9, to the first record"] = f"{ready(third):.2f} s"
    stop(third.process)
    return figures


def main() -> None:
    brokers = {"ottla": ottla}
    if rival.fetched():
        brokers["Apache Kafka"] = apache_kafka
    if go_rival.can_be_had():
        go_rival.fetch()
        brokers["kfake"] = kfake
    figures = {}
    for name, broker in brokers.items():
        with TemporaryDirectory(prefix="partitions-") as folder, broker(Path(folder)) as start:
            figures[name] = measure(start)
    shown = Table(title=f"{TOPICS} topics of one partition", title_justify="left")
    for heading in ("", *figures):
        shown.add_column(heading)
    for row in figures["ottla"]:
        shown.add_row(row, *(column[row] for column in figures.values()))
    show(shown)


if __name__ == "__main__":
    main()
