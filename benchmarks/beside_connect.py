"""Rows per second of a pipeline in a file beside Kafka Connect, and the processor time of each.

    python -m benchmarks.beside_connect [ROWS]

Lines of a file into a topic, by Connect's own FileStreamSource in one standalone worker, and by ours in a Spark session. Both sides run warm, on
the same broker of ours, by turns, from the start of a connector or of a pipeline until the last row is where it is to be. Connect is at
least once there, ours exactly once.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any
from uuid import uuid4

import psutil
from pyspark.sql import SparkSession
from rich.table import Table

import ottla.spark
from benchmarks._processor_time import used_by_tree
from benchmarks.race import show
from ottla import Admin, Broker, NewTopic, TopicPartition
from ottla.pipelines.file.reading import read_text
from ottla.pipelines.manager.manager import Manager
from rivals.kafka_connect import KafkaConnect, kafka_connect

ROWS = 1_000_000
ROUNDS = 3
PARTITIONS = 1
LATEST = -1
PATIENCE = 120.0
PAUSE = 0.02
OTHERS = ("ottla.broker", "ConnectStandalone")
"""What the command lines of processes have that are not Spark's."""
Run = Callable[[], None]


class Side:
    """What both need."""

    def __init__(self, spark: SparkSession, connect: KafkaConnect, servers: str, rows: int, folder: Path) -> None:
        self.spark, self.connect, self.servers, self.rows, self.folder = spark, connect, servers, rows, folder
        self.admin = Admin(bootstrap_servers=servers)

    def topic(self, name: str | None = None) -> str:
        name = name or f"rows-{uuid4()}"
        self.admin.create_topics([NewTopic(name, PARTITIONS, 1)])
        return name

    def count(self, topic: str) -> int:
        """Its records, with marks of transactions."""
        parts = [TopicPartition(topic, number) for number in range(PARTITIONS)]
        return sum(one.offset for one in self.admin.list_offsets(dict.fromkeys(parts, LATEST)).values())

    def run(self, **pipelines: Any) -> None:
        """Pipelines of ours, for what is there."""
        folder = self.folder / str(uuid4())
        folder.mkdir()
        text = json.dumps({"settings": {"bootstrap.servers": self.servers}, "pipelines": pipelines})
        assert Manager(read_text(text.encode(), "race", folder, {}), self.spark, once=True).run()

    @contextmanager
    def connector(self, **config: Any) -> Iterator[Callable[[Callable[[], bool]], None]]:
        """Started; gives a wait for what it is to do."""
        name = f"c{uuid4().hex}"
        self.connect.start(name, **config)
        try:
            yield lambda condition: self.wait(name, condition)
        finally:
            self.connect.delete(name)

    def spent_by_connect(self) -> float:
        """Seconds of a core."""
        return used_by_tree(self.connect.process)

    def spent_by_us(self) -> float:
        """Of Spark, its workers and this process; the broker, which both sides need, is left out."""
        children = psutil.Process().children()
        others = [one.pid for one in children if any(sign in " ".join(one.cmdline()) for sign in OTHERS)]
        return used_by_tree(os.getpid()) - sum(map(used_by_tree, others))

    def wait(self, name: str, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE
        while not condition():
            if time.monotonic() > deadline:
                raise TimeoutError(f"connector {name} is not done after {PATIENCE} s")
            self.connect.check(name)
            time.sleep(PAUSE)


def files(side: Side) -> dict[str, Run]:
    """Lines of a file."""
    folder = side.folder / "in"
    folder.mkdir()
    file = folder / "lines.txt"
    file.write_text("".join(f"{number:0100}\n" for number in range(side.rows)))

    def ours() -> None:
        topic = side.topic()
        source = {"type": "files", "format": "lines", "path": str(folder)}
        side.run(lines={"source": source, "sink": {"type": "topic", "topic": topic}})
        assert side.count(topic) >= side.rows

    def connect() -> None:
        topic = side.topic()
        reads = {"connector_class": "FileStreamSource", "file": file, "topic": topic, "tasks_max": 1}
        with side.connector(**reads) as wait:
            wait(lambda: side.count(topic) >= side.rows)

    return {"pipeline file": ours, "Kafka Connect": connect}


def measured(side: Side, contenders: dict[str, Run]) -> dict[str, list[tuple[float, float]]]:
    """Seconds by the clock and of a core, a first round left out."""
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in contenders}
    for number in range(ROUNDS + 1):
        for name, run in contenders.items():
            spent = side.spent_by_connect if name == "Kafka Connect" else side.spent_by_us
            before, began = spent(), time.perf_counter()
            run()
            taken = time.perf_counter() - began, spent() - before
            if number:
                found[name].append(taken)
    return found


def table(rows: int, found: dict[str, list[tuple[float, float]]]) -> Table:
    result = Table(title=f"Lines of a file into a topic, {rows:,}", title_justify="left")
    for heading in ("", "rows/s", "ratio", "µs of a core for a row"):
        result.add_column(heading, justify="right" if heading else "left")
    for name, heats in found.items():
        ratio = median(theirs[0] / ours[0] for ours, theirs in zip(heats, found["Kafka Connect"], strict=True))
        cost = median(cpu for _, cpu in heats) / rows * 1e6
        result.add_row(name, f"{rows / median(taken for taken, _ in heats):,.0f}", f"{ratio:.2f} ×", f"{cost:.2f}")
    return result


def main() -> None:
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else ROWS
    with (
        Broker(process=True) as broker,
        TemporaryDirectory() as folder,
        kafka_connect(broker.bootstrap_servers) as connect,
    ):
        spark = ottla.spark.session("benchmark", "local[2]", spark__log__level="OFF")
        side = Side(spark, connect, broker.bootstrap_servers, rows, Path(folder))
        show(table(rows, measured(side, files(side))))
        spark.stop()


if __name__ == "__main__":
    main()
