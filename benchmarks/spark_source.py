"""Measure rows per second from a topic into Spark: our source and Spark's own Kafka connector.

    python -m benchmarks.spark_source [GROUP] [RECORDS]

Groups: batch (one column, all columns, then a Python function over Arrow), streams, driver (a topic as an Arrow table
or a data frame), json, avro (with schema ids, which the connector's query strips for `from_avro` with one schema),
memory (of a worker that reads 5 GB). Both read the same topic of our broker in the same session, in turns, into `noop`,
which has no cost. The connector is downloaded from Maven Central for Spark 4.2.0, so
both run on pyspark 4.2.0 in a separate environment (.cache/). "Rows at hand" is a source in Python that returns one
batch repeatedly: it shows Spark's own share, and the upper bound for our source. Next to the elapsed time, the table
shows the processor time of Spark and its workers.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import Any

from rich.table import Table

from benchmarks.race import show
from benchmarks.registry_thread import served_registry
from benchmarks.spark_memory import worker_memory
from ottla import Admin, Broker, NewTopic, Producer
from rivals.spark_connector import avro_jar, connector_jars, spark_python

ROOT = Path(__file__).parents[1]
PARTITIONS = 6
VALUE_BYTES = 100
CHUNK = 50_000
GROUPS = {
    "batch": ("rows", 5_000_000, 3),
    "streams": ("rows", 3_000_000, 3),
    "driver": ("driver", 1_000_000, 5),
    "json": ("json", 2_000_000, 3),
    "avro": ("avro", 2_000_000, 5),
}
"""The topic, the number of records and the number of rounds of each group."""


def plain_value(row: int) -> bytes:
    return b"%0*d" % (VALUE_BYTES, row)


def json_value(row: int) -> bytes:
    """An object of some 150 bytes, with most of the types that there are."""
    return (
        b'{"id": %d, "name": "name-%d", "price": %d.25, "ok": true, "at": "2026-01-02T03:04:%02dZ", "tags": ["a", "b"], '
        b'"size": {"w": %d, "h": 5}}' % (row, row, row % 1000, row % 60, row % 100)
    )


AVRO = json.dumps(
    {
        "type": "record",
        "name": "Sale",
        "fields": [
            {"name": "id", "type": "long"},
            {"name": "name", "type": "string"},
            {"name": "price", "type": "double"},
            {"name": "ok", "type": "boolean"},
            {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
            {"name": "tags", "type": {"type": "array", "items": "string"}},
            {"name": "count", "type": ["null", "int"]},
            {
                "name": "size",
                "type": {
                    "type": "record",
                    "name": "Size",
                    "fields": [{"name": "w", "type": "int"}, {"name": "h", "type": "int"}],
                },
            },
        ],
    }
)


def avro_value(row: int) -> dict[str, Any]:
    """A record of some 50 bytes, with most of the types that there are."""
    return {
        "id": row,
        "name": f"name-{row}",
        "price": row % 1000 + 0.25,
        "ok": True,
        "at": 1_767_323_045_000_000 + row,
        "tags": ["a", "b"],
        "count": row if row % 3 else None,
        "size": {"w": row % 100, "h": 5},
    }


VALUES: dict[str, Callable[[int], bytes]] = {"rows": plain_value, "driver": plain_value, "json": json_value}


def fill(servers: str, topic: str, records: int, registry: str = "") -> None:
    """The topic: an eight-byte key, and a value of its kind."""
    import pyarrow as pa

    value: Callable[[int], Any] = avro_value if topic == "avro" else VALUES[topic]
    more: dict[str, Any] = (
        {"value_format": "avro", "value_schema": AVRO, "registry": registry} if topic == "avro" else {}
    )
    with Admin(bootstrap_servers=servers) as admin:
        admin.create_topics([NewTopic(topic, PARTITIONS, 1)])
    with Producer(bootstrap_servers=servers, batch_size=200_000, linger_ms=50) as producer:
        for start in range(0, records, CHUNK):
            rows = range(start, min(start + CHUNK, records))
            keys, values = pa.array([b"%08d" % row for row in rows]), pa.array([value(row) for row in rows])
            producer.send_table(topic, pa.table({"key": keys, "value": values}), **more)
        producer.flush()


def race(group: str, servers: str, records: int, rounds: int, registry: str) -> list[dict[str, Any]]:
    """The measurements, as `_spark_session.py` prints them."""
    python = spark_python()
    jars = ",".join(map(str, [*connector_jars(python), *([avro_jar()] if group == "avro" else [])]))
    command = [
        str(python),
        "-m",
        "benchmarks._spark_session",
        group,
        servers,
        jars,
        str(records),
        str(rounds),
        registry,
    ]
    environment = os.environ | {"PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True, cwd=ROOT)
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def table(measured: list[dict[str, Any]]) -> Table:
    """Medians of each path, and the medians of the ratios round by round."""
    result = Table(title="Spark reads a topic, million rows/s", title_justify="left")
    names = (
        "read",
        "spark-sql-kafka-0-10 4.2.0",
        "ottla",
        "ratio",
        "rows at hand",
        "ratio",
        "theirs, µs of CPU",
        "ours",
    )
    for heading in names:
        result.add_column(heading, justify="left" if heading == "read" else "right")
    found: dict[str, dict[str, list[dict[str, Any]]]] = defaultdict(lambda: defaultdict(list))
    for line in measured:
        found[line["read"]][line["source"]].append(line)
    for read, by_source in found.items():
        rates = {name: [line["rows"] / line["seconds"] / 1e6 for line in lines] for name, lines in by_source.items()}
        cpu = [median(line["cpu"] / line["rows"] * 1e6 for line in by_source[source]) for source in ("kafka", "ottla")]
        cells = [f"{median(rates['kafka']):.2f}", *against(rates, "ottla"), *against(rates, "ready")]
        result.add_row(read, *cells, *(f"{micros:.2f}" for micros in cpu))
    return result


def against(rates: dict[str, list[float]], source: str) -> tuple[str, str]:
    """A source's rate and what it is of the connector's; nothing where it was not measured."""
    if source not in rates:
        return "", ""
    ratio = median(rate / theirs for rate, theirs in zip(rates[source], rates["kafka"], strict=True))
    return f"{median(rates[source]):.2f}", f"{ratio:.1f} ×"


def main() -> None:
    wanted = sys.argv[1] if len(sys.argv) > 1 else None
    for group, (topic, records, rounds) in GROUPS.items():
        if wanted in (None, group):
            count = int(sys.argv[2]) if len(sys.argv) > 2 else records
            with ExitStack() as stack:
                servers = stack.enter_context(Broker(process=True)).bootstrap_servers
                registry = stack.enter_context(served_registry(servers)) if group == "avro" else ""
                fill(servers, topic, count, registry)
                show(table(race(group, servers, count, rounds, registry)))
    if wanted in (None, "memory"):
        worker_memory(int(sys.argv[2]) if len(sys.argv) > 2 else None)


if __name__ == "__main__":
    main()
