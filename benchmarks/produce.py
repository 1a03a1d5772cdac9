"""Measure producing, ours next to other clients on the same broker (ours): all rows in one run, in turns.

Each side has two figures: elapsed time, and the processor time of the client's process, which is valid even on a busy
machine. Ratios are relative to confluent-kafka unless the row names another client. All have the same settings: a full
batch is 500,000 bytes, and none waits longer than 5 ms. Ours is idempotent, its default, unless the row states
otherwise. Turns in another process start when it is ready to send.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from rich.table import Table

from benchmarks import _producers as producers
from benchmarks.brokers import Running, ottla_broker
from benchmarks.race import show
from ottla import Admin, NewTopic

ROUNDS = 3
BIG, SMALL = 400_000, 100_000
"""The number of records in one turn at 100 bytes, and at 1 KiB."""
ROWS = 4_000_000
FEW = 20_000
"""The number of records in one turn of slow clients."""
FULL_TILT_SECONDS = 4.0
HERE = Path(__file__).resolve().parent.parent
Run = Callable[[str, str, int, int], tuple[float, float]]
"""(bootstrap, topic, records, value size in bytes) → elapsed seconds and processor seconds."""


class Turn(NamedTuple):
    """The cost of one record in a turn, in microseconds."""

    wall: float
    cpu: float


class Contender(NamedTuple):
    """A client that takes turns."""

    records: int
    run: Run
    size: int


class Row(NamedTuple):
    """A row of the table with two contenders."""

    name: str
    ours: str
    theirs: str
    aim: str
    bytes: int = 0
    """The size of a record in bytes, if the figure is in MB/s."""


def own(work: producers.Send) -> Run:
    """Return a turn in this process."""

    def run(server: str, topic: str, records: int, size: int) -> tuple[float, float]:
        clock, used = time.perf_counter(), time.process_time()
        work(server, topic, records, size)
        return time.perf_counter() - clock, time.process_time() - used

    return run


def elsewhere(source: Path) -> Run:
    """Return a turn of ours with callbacks in another process, which imports Ottla from `source`."""

    def run(server: str, topic: str, records: int, size: int) -> tuple[float, float]:
        told = child(source, "send", server, topic, str(records), str(size))
        return told["wall"], told["cpu"]

    return run


def child(source: Path, *arguments: str) -> Any:
    """Return the output of a process of `benchmarks._producers`, parsed as JSON."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(source), str(HERE)))}
    command = [sys.executable, "-m", "benchmarks._producers", *arguments]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout)


@contextmanager
def uncompiled() -> Iterator[Path]:
    """Return a copy of our sources without their compiled modules."""
    with TemporaryDirectory(prefix="ottla-bench-plain-") as folder:
        shutil.copytree(HERE / "src", folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
        yield Path(folder)


def contenders(plain: Path) -> Mapping[str, Contender]:
    """Return all contenders by name."""
    ours, theirs = producers.ottla_records, producers.confluent_records
    quick = {
        "callbacks": ours("callbacks"),
        "futures": ours("futures"),
        "plain": ours(""),
        "not idempotent": ours("", enable_idempotence=False),
        "confluent": theirs(True),
        "confluent, no callbacks": theirs(False),
    }
    found = {name: Contender(BIG, own(work), 100) for name, work in quick.items()}
    for name in ("callbacks", "futures", "confluent"):
        found[f"{name}, 1 KiB"] = Contender(SMALL, own(quick[name]), 1024)
    found["confluent, batches"] = Contender(BIG, own(producers.confluent_batches), 100)
    found["many"] = Contender(BIG, own(producers.ottla_many), 100)
    found["table"] = Contender(ROWS, own(producers.ottla_table()), 100)
    found["table, not idempotent"] = Contender(ROWS, own(producers.ottla_table(enable_idempotence=False)), 100)
    found["table, 1 KiB"] = Contender(ROWS // 10, own(producers.ottla_table()), 1024)
    found["aio"] = Contender(BIG, own(awaited(producers.ottla_awaited)), 100)
    found["aiokafka"] = Contender(FEW, own(awaited(producers.aiokafka_records)), 100)
    found["kafka-python"] = Contender(FEW, own(producers.kafka_python_records), 100)
    found["uncompiled"] = Contender(BIG // 4, elsewhere(plain), 100)
    return found


def awaited(work: Callable[[str, str, int, int], Any]) -> producers.Send:
    """Return the same turn in an event loop."""
    return lambda *arguments: asyncio.run(work(*arguments))


LINES = (
    Row("100 B with callbacks, records/s", "callbacks", "confluent", "≥ 1.8"),
    Row("100 B with futures, records/s", "futures", "confluent", "≥ 1"),
    Row("100 B, nobody looks, records/s", "plain", "confluent, no callbacks", ""),
    Row("1 KiB with callbacks, records/s", "callbacks, 1 KiB", "confluent, 1 KiB", "≥ 1"),
    Row("1 KiB with futures, records/s", "futures, 1 KiB", "confluent, 1 KiB", "≥ 1"),
    Row("send_table, 100 B, records/s", "table", "confluent", "≥ 10"),
    Row("send_table ÷ produce_batch, 100 B, records/s", "table", "confluent, batches", "≥ 6"),
    Row("send_many ÷ produce_batch, 100 B, records/s", "many", "confluent, batches", ""),
    Row("send_table, 1 KiB, MB/s", "table, 1 KiB", "confluent, 1 KiB", "≥ 3", 1024),
    Row("idempotent ÷ not, 100 B, records/s", "plain", "not idempotent", "≥ 0.95"),
    Row("idempotent ÷ not, send_table, records/s", "table", "table, not idempotent", "≥ 0.95"),
    Row("aio.send ÷ send, records/s", "aio", "plain", "near 1"),
    Row("aio.send ÷ aiokafka, records/s", "aio", "aiokafka", "≥ 3"),
    Row("uncompiled ÷ kafka-python, records/s", "uncompiled", "kafka-python", "≥ 5"),
)


def take_turns(server: Running, everybody: Mapping[str, Contender], rounds: int) -> dict[str, list[Turn]]:
    """Run all contenders in turns. The first round is a warm-up and is not counted."""
    turns: dict[str, list[Turn]] = {name: [] for name in everybody}
    with Admin(bootstrap_servers=server.bootstrap) as admin:
        for number in range(rounds + 1):
            for name, who in everybody.items():
                topic = f"{name.replace(', ', '-').replace(' ', '-')}-{number}"
                records = who.records if number else who.records // 10
                admin.create_topics([NewTopic(topic, 1, 1)])
                wall, cpu = who.run(server.bootstrap, topic, records, who.size)
                admin.delete_topics([topic])  # the host gives the same memory to the next topic
                if number:
                    turns[name].append(Turn(wall / records * 1e6, cpu / records * 1e6))
    return turns


def table(turns: Mapping[str, list[Turn]]) -> Table:
    """Medians of each side; ratios are medians of the rounds' ratios."""
    shown = Table(title="what producing costs", title_justify="left")
    for heading in ("", "ours", "theirs", "ratio", "our CPU µs", "their CPU µs", "CPU ratio", "aim"):
        shown.add_column(heading, justify="left" if heading in ("", "aim") else "right")
    for row in LINES:
        if row.ours in turns and row.theirs in turns:
            shown.add_row(row.name, *figures(row, turns[row.ours], turns[row.theirs]), row.aim)
    return shown


def figures(row: Row, ours: list[Turn], theirs: list[Turn]) -> Iterator[str]:
    """Return the cells of one row."""
    for side in (ours, theirs):
        rate = 1e6 / statistics.median(turn.wall for turn in side)
        yield f"{rate * row.bytes / 1e6:,.0f}" if row.bytes else f"{rate:,.0f}"
    pairs = list(zip(ours, theirs, strict=True))
    yield f"{statistics.median(their.wall / our.wall for our, their in pairs):.2f}"
    for side in (ours, theirs):
        yield f"{statistics.median(turn.cpu for turn in side):.3f}"
    yield f"{statistics.median(their.cpu / max(our.cpu, 1e-9) for our, their in pairs):.2f}"


def memory(server: Running) -> Table:
    """Measure the additional memory of a producer at full speed since its start. `buffer.memory` is 32 MB."""
    shown = Table(title="memory at full tilt above idle, buffer.memory = 32 MB", title_justify="left")
    for heading in ("", "MB", "aim"):
        shown.add_column(heading, justify="right" if heading == "MB" else "left")
    for name, kind, size in (
        ("send, 100 B, with callbacks", "callbacks", 100),
        ("send, 1 KiB", "", 1024),
        ("send_table, 1 KiB", "table", 1024),
    ):
        with Admin(bootstrap_servers=server.bootstrap) as admin:
            topic = f"memory-{kind}-{size}"
            admin.create_topics([NewTopic(topic, 4, 1)])
            told = child(HERE / "src", "memory", server.bootstrap, topic, kind, str(size), str(FULL_TILT_SECONDS))
            admin.delete_topics([topic])
        shown.add_row(name, f"{told['megabytes']:,.0f}", "< 100")
    return shown


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    only = sys.argv[2].split("|") if len(sys.argv) > 2 else None
    with ExitStack() as open_now:
        server = open_now.enter_context(ottla_broker())
        everybody = contenders(open_now.enter_context(uncompiled()))
        chosen = {name: who for name, who in everybody.items() if only is None or name in only}
        show(table(take_turns(server, chosen, rounds)))
        if only is None:
            show(memory(server))


if __name__ == "__main__":
    main()
