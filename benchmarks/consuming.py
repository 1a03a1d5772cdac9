"""Measure our consumer next to confluent-kafka and kafka-python: by records, with Arrow, in asyncio, and idle.

`python -m benchmarks.consuming`, with `--kafka` on Apache Kafka instead of our broker. Each consumer is a separate
process, and they read the same topic in turns. The processor time of all threads is counted. Ours also runs uncompiled,
from a copy of the package without its compiled modules.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import confluent_kafka as ck
from confluent_kafka.admin import AdminClient, NewTopic
from rich.table import Table

import ottla
from benchmarks._consumers import IDLE_SECONDS
from benchmarks.brokers import Running, apache_kafka, ottla_broker
from benchmarks.confluent import PRODUCER, SECONDS
from benchmarks.race import show

VALUE_BYTES = 100
PARTITIONS = 6
RECORDS = 4_000_000
FEW = 300_000
"""The number of records per turn for slow consumers."""
ROUNDS = 3
CHUNK = 10_000
serial = count()


class Row(NamedTuple):
    """One figure: our consumer next to another."""

    what: str
    ours: str
    theirs: str
    aim: str
    records: int = RECORDS
    plain: bool = False
    """True if ours runs uncompiled."""


ROWS = [
    Row("records, each value read: poll() / confluent consume()", "ottla_records", "confluent_records", ">= 2"),
    Row("the same by iteration / confluent consume()", "ottla_iteration", "confluent_records", ""),
    Row("the same by ottla.aio / by ottla", "ottla_aio", "ottla_records", "about 1"),
    Row("value to Arrow: poll_arrow(columns) / confluent", "ottla_value", "confluent_value", ">= 13"),
    Row("all columns to Arrow: poll_arrow() / confluent", "ottla_arrow", "confluent_arrow", ">= 8"),
    Row("records, uncompiled / kafka-python", "ottla_records", "kafka_python", ">= 5", FEW, plain=True),
]


class Run(NamedTuple):
    """The result of one consumer in one turn."""

    wall: float
    cpu: float


class Worker:
    """The process of a consumer."""

    def __init__(self, name: str, source: Path) -> None:
        self.name = name
        command = [sys.executable, "-m", "benchmarks._consumers", name]
        environment = os.environ | {"PYTHONPATH": str(source)}
        self.process = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def run(self, server: Running, topic: str, records: int) -> Run:
        """Read the records, and return the times."""
        self.begin(server, topic, records)
        return self.end(records)

    def begin(self, server: Running, topic: str, records: int) -> None:
        """Send the task to the process."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{server.bootstrap} {topic} {PARTITIONS} {records}\n")
        self.process.stdin.flush()

    def end(self, records: int) -> Run:
        """Wait for the end of the turn, and return the times."""
        assert self.process.stdout is not None
        answer = json.loads(self.process.stdout.readline() or "null")
        assert answer is not None, f"{self.name} has ended"
        assert answer["bytes"] >= VALUE_BYTES * records, f"{self.name} saw {answer['bytes']} bytes"
        return Run(answer["wall"], answer["cpu"])

    def close(self) -> None:
        """Close its input, and wait until it exits."""
        with self.process:
            assert self.process.stdin is not None
            self.process.stdin.close()


class Workers:
    """The processes of all consumers, by name and form."""

    def __init__(self, plain_source: Path) -> None:
        self._plain_source = plain_source
        self._workers: dict[tuple[str, bool], Worker] = {}

    def worker(self, name: str, *, plain: bool) -> Worker:
        """Return the process for `name`. Starts it if necessary."""
        found = self._workers.get((name, plain))
        if found is None:
            source = self._plain_source if plain else Path(ottla.__file__).parent.parent
            found = self._workers[name, plain] = Worker(name, source)
        return found

    def close(self) -> None:
        for worker in self._workers.values():
            worker.close()


@contextmanager
def field() -> Iterator[Workers]:
    """Yield the processes, with a copy of the package that is not compiled."""
    with TemporaryDirectory(prefix="ottla-bench-") as folder:
        source = Path(folder)
        package = Path(ottla.__file__).parent
        shutil.copytree(package, source / "ottla", ignore=shutil.ignore_patterns("*.so", "*.pyd", "__pycache__"))
        found = Workers(source)
        try:
            yield found
        finally:
            found.close()


def fill(server: Running, records: int) -> str:
    """Create a topic with `records` values, in batches of the usual size, and return its name."""
    name = f"bench-{next(serial)}"
    admin = AdminClient({"bootstrap.servers": server.bootstrap})
    for done in admin.create_topics([NewTopic(name, PARTITIONS, 1)]).values():
        done.result(SECONDS)
    producer = ck.Producer({"bootstrap.servers": server.bootstrap} | PRODUCER)
    chunk = [{"value": os.urandom(VALUE_BYTES // 2).hex().encode()} for _ in range(CHUNK)]
    for number in range(records // CHUNK):
        producer.produce_batch(name, chunk, number % PARTITIONS)
        producer.poll(0)
    left = producer.flush(SECONDS)
    assert left == 0, f"{left} records were not acknowledged"
    return name


def turns(workers: Sequence[Worker], server: Running, topic: str, records: int, rounds: int) -> list[list[Run]]:
    """Run the workers in turns, and return the results of each. The first round is not counted."""
    runs: list[list[Run]] = [[] for _ in workers]
    for number in range(rounds + 1):
        for worker, found in zip(workers, runs, strict=True):
            run = worker.run(server, topic, records)
            if number:
                found.append(run)
    return runs


def compare(row: Row, entrants: Workers, server: Running, topic: str, rounds: int) -> list[str]:
    """Return the row of one figure."""
    workers = [entrants.worker(row.ours, plain=row.plain), entrants.worker(row.theirs, plain=False)]
    ours, theirs = turns(workers, server, topic, row.records, rounds)
    wall = statistics.median(their.wall / our.wall for our, their in zip(ours, theirs, strict=True))
    cpu = statistics.median(their.cpu / our.cpu for our, their in zip(ours, theirs, strict=True))
    rates = [row.records / statistics.median(run.wall for run in runs) for runs in (ours, theirs)]
    processor = [row.records / statistics.median(run.cpu for run in runs) for runs in (ours, theirs)]
    figures = [f"{rates[0] / 1e6:.2f}", f"{rates[1] / 1e6:.2f}", f"{wall:.2f}"]
    return [row.what, *figures, f"{processor[0] / 1e6:.2f}", f"{processor[1] / 1e6:.2f}", f"{cpu:.2f}", row.aim]


def idle(entrants: Workers, server: Running, topic: str) -> list[str]:
    """Measure idle consumers, both at once, and return their row: milliseconds of processor time per second."""
    workers = [entrants.worker(name, plain=False) for name in ("ottla_idle", "confluent_idle")]
    for worker in workers:
        worker.begin(server, topic, 0)
    ours, theirs = (worker.end(0).cpu / IDLE_SECONDS * 1000 for worker in workers)
    return ["idle, CPU ms per second", "", "", "", f"{ours:.2f}", f"{theirs:.2f}", f"{ours / theirs:.2f}", "<= 1"]


def main() -> None:
    arguments = ArgumentParser(description=__doc__)
    arguments.add_argument("--kafka", action="store_true", help="read from Apache Kafka")
    arguments.add_argument("--rounds", type=int, default=ROUNDS)
    arguments.add_argument("--only", default="", help="the rows whose text has this")
    chosen = arguments.parse_args()
    shown = Table(
        title=f"consume {VALUE_BYTES} bytes, {PARTITIONS} partitions, million records/s", title_justify="left"
    )
    for heading in ("", "ours", "theirs", "ratio", "ours/CPU s", "theirs/CPU s", "ratio", "aim"):
        shown.add_column(heading, justify="right" if heading else "left")
    with ExitStack() as stack:
        server = stack.enter_context(apache_kafka() if chosen.kafka else ottla_broker())
        entrants = stack.enter_context(field())
        assert server is not None, "Apache Kafka's jars are not here: make interop fetches them"
        topic = fill(server, RECORDS)
        for row in ROWS:
            if chosen.only in row.what:
                shown.add_row(*compare(row, entrants, server, topic, chosen.rounds))
        if chosen.only in "idle":
            shown.add_row(*idle(entrants, server, topic))
    show(shown)


if __name__ == "__main__":
    main()
