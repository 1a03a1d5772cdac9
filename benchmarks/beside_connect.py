"""Compare a pipeline of a file with Kafka Connect: rows per second, and processor time.

    python -m benchmarks.beside_connect [files|table] [ROWS]

files: lines of a file into a topic, by Connect's FileStreamSource in one standalone worker, and by ours in a Spark
session. table: rows of a topic (JSON with its schema, as Connect requires it) into a table of PostgreSQL, by Debezium's
JDBC sink with default and with larger batches, and by ours. All run warm, in turns, on the same broker of ours, from
the start of a connector or pipeline until the last row has arrived. Connect delivers at least once here, ours exactly
once.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import psutil
import psycopg
from pyspark.sql import SparkSession
from rich.table import Table

import ottla.spark
from benchmarks._processor_time import used_by_tree
from benchmarks.race import show
from ottla import Admin, Broker, NewTopic, Producer, TopicPartition
from ottla.pipelines.file.reading import read_text
from ottla.pipelines.manager.manager import Manager
from rivals.kafka_connect import KafkaConnect, kafka_connect
from rivals.postgresql import postgresql

ROWS = {"files": 1_000_000, "table": 200_000}
ROUNDS = 3
PARTITIONS = 1
LATEST = -1
PATIENCE = 120.0
PAUSE = 0.02
OTHERS = ("ottla.broker", "ConnectStandalone", "bin/postgres")
"""Parts of command lines that identify processes outside Spark."""
CONNECT = "Kafka Connect"
JSON = "org.apache.kafka.connect.json.JsonConverter"
FIELDS = (
    {"field": "id", "type": "int64"},
    {"field": "card", "type": "string"},
    {"field": "at", "type": "int64", "name": "org.apache.kafka.connect.data.Timestamp", "version": 1},
    {"field": "amount", "type": "double"},
)
COLUMNS = "id bigint primary key, card text not null, at timestamptz not null, amount double precision not null"
PAYLOAD = "payload struct<id: bigint, card: string, at: bigint, amount: double>"
QUERY = "select payload.id, payload.card, timestamp_millis(payload.at) as at, payload.amount from input"
LARGER = {"batch_size": 10_000, "consumer_override_max_poll_records": 10_000}
Run = Callable[[], None]


class Side:
    """The resources that both contenders use."""

    def __init__(self, spark: SparkSession, connect: KafkaConnect, servers: str, rows: int, folder: Path) -> None:
        self.spark, self.connect, self.servers, self.rows, self.folder = spark, connect, servers, rows, folder
        self.admin = Admin(bootstrap_servers=servers)

    def topic(self, name: str | None = None) -> str:
        name = name or f"rows-{uuid4()}"
        self.admin.create_topics([NewTopic(name, PARTITIONS, 1)])
        return name

    def count(self, topic: str) -> int:
        """Return the number of records in the topic, including transaction markers."""
        parts = [TopicPartition(topic, number) for number in range(PARTITIONS)]
        return sum(one.offset for one in self.admin.list_offsets(dict.fromkeys(parts, LATEST)).values())

    def run(self, **pipelines: Any) -> None:
        """Run pipelines of ours on the existing data."""
        folder = self.folder / str(uuid4())
        folder.mkdir()
        text = json.dumps({"settings": {"bootstrap.servers": self.servers}, "pipelines": pipelines})
        assert Manager(read_text(text.encode(), "race", folder, {}), self.spark, once=True).run()

    @contextmanager
    def connector(self, **config: Any) -> Iterator[Callable[[Callable[[], bool]], None]]:
        """Start a connector, and return a function that waits until it has done its work."""
        name = f"c{uuid4().hex}"
        self.connect.start(name, **config)
        try:
            yield lambda condition: self.wait(name, condition)
        finally:
            self.connect.delete(name)

    def spent_by_connect(self) -> float:
        """Return Connect's processor time in seconds."""
        return used_by_tree(self.connect.process)

    def spent_by_us(self) -> float:
        """Return the processor time of Spark, its workers and this process.

        The broker, which both sides use, is excluded.
        """
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
    """Compare the copying of lines of a file."""
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

    return {"pipeline file": ours, CONNECT: connect}


def rows_of_a_topic(side: Side, database: str) -> dict[str, Run]:
    """Compare the copying of a topic into a table."""
    place = urlsplit(database)
    filled = side.topic()
    schema = {"type": "struct", "fields": FIELDS}
    with Producer(bootstrap_servers=side.servers) as producer:
        for n in range(side.rows):
            row = {"id": n, "card": f"4111-{n}", "at": 1_700_000_000_000 + n, "amount": n * 1.5}
            producer.send(filled, json.dumps({"schema": schema, "payload": row}).encode())

    def made() -> str:
        name = f"t{uuid4().hex}"
        with psycopg.connect(database, autocommit=True) as connection:
            connection.execute(f"create table {name} ({COLUMNS})")
        return name

    def is_done(name: str) -> bool:
        with psycopg.connect(database, autocommit=True) as connection:
            return connection.execute(f"select count(*) from {name}").fetchone() == (side.rows,)

    def ours() -> None:
        name = made()
        source = {"type": "topic", "topic": filled, "valueFormat": "json", "valueSchema": PAYLOAD}
        sink = {"type": "database", "url": database, "table": name}
        side.run(rows={"source": source, "transforms": [{"sql": QUERY}], "sink": sink})
        assert is_done(name)

    def connect(larger: Mapping[str, int], options: str) -> None:
        name = made()
        writes = {
            "connector_class": "io.debezium.connector.jdbc.JdbcSinkConnector",
            "tasks_max": 1,
            "topics": filled,
            "connection_url": f"jdbc:postgresql://{place.hostname}:{place.port}{place.path}{options}",
            "connection_username": place.username,
            "connection_password": place.password or "",
            "collection_name_format": name,
            "insert_mode": "insert",
            "primary_key_mode": "none",
            "schema_evolution": "none",
            "value_converter": JSON,
            "value_converter_schemas_enable": "true",
            "consumer_override_auto_offset_reset": "earliest",
            **larger,
        }
        with side.connector(**writes) as wait:
            wait(lambda: is_done(name))

    return {
        "pipeline file": ours,
        CONNECT: lambda: connect({}, ""),
        f"{CONNECT}, larger batches": lambda: connect(LARGER, "?reWriteBatchedInserts=true"),
    }


def measured(side: Side, contenders: dict[str, Run]) -> dict[str, list[tuple[float, float]]]:
    """Return elapsed seconds and processor seconds. A first round is not counted."""
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in contenders}
    for number in range(ROUNDS + 1):
        for name, run in contenders.items():
            spent = side.spent_by_connect if name.startswith(CONNECT) else side.spent_by_us
            before, began = spent(), time.perf_counter()
            run()
            taken = time.perf_counter() - began, spent() - before
            if number:
                found[name].append(taken)
    return found


def table(title: str, rows: int, found: dict[str, list[tuple[float, float]]]) -> Table:
    result = Table(title=f"{title}, {rows:,}", title_justify="left")
    for heading in ("", "rows/s", "ratio", "µs of a core for a row"):
        result.add_column(heading, justify="right" if heading else "left")
    for name, heats in found.items():
        ratio = median(theirs[0] / ours[0] for ours, theirs in zip(heats, found[CONNECT], strict=True))
        cost = median(cpu for _, cpu in heats) / rows * 1e6
        result.add_row(name, f"{rows / median(taken for taken, _ in heats):,.0f}", f"{ratio:.2f} ×", f"{cost:.2f}")
    return result


def main() -> None:
    cases = sys.argv[1:2] or list(ROWS)
    with (
        Broker(process=True) as broker,
        postgresql() as server,
        TemporaryDirectory() as folder,
        kafka_connect(broker.bootstrap_servers) as connect,
    ):
        spark = ottla.spark.session("benchmark", "local[2]", spark__log__level="OFF")
        for case in cases:
            rows = int(sys.argv[2]) if len(sys.argv) > 2 else ROWS[case]
            side = Side(spark, connect, broker.bootstrap_servers, rows, Path(folder))
            if case == "files":
                show(table("Lines of a file into a topic", rows, measured(side, files(side))))
            else:
                found = measured(side, rows_of_a_topic(side, server.url))
                show(table("Rows of a topic into a table of PostgreSQL", rows, found))
        spark.stop()


if __name__ == "__main__":
    main()
