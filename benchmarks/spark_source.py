"""Rows per second from a topic into Spark: our source against Spark's own Kafka connector.

    python -m benchmarks.spark_source [RECORDS]

Both read the same topic of our broker in the same session, by turns, into `noop`, which costs nothing. The connector
comes from Maven Central for Spark 4.2.0, so both run on pyspark 4.2.0 in an environment of their own (.cache/).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from statistics import median

from rich.table import Table

from benchmarks.race import show
from benchmarks.spark_setup import connector_jars, spark_python
from ottla import Admin, Broker, NewTopic, Producer

ROOT = Path(__file__).parents[1]
PARTITIONS = 6
VALUE_BYTES = 100
RECORDS = 3_000_000
ROUNDS = 5
CHUNK = 50_000


def fill(servers: str, records: int) -> None:
    """The topic `rows`: an eight-byte key, a value of 100 bytes."""
    import pyarrow as pa

    with Admin(bootstrap_servers=servers) as admin:
        admin.create_topics([NewTopic("rows", PARTITIONS, 1)])
    with Producer(bootstrap_servers=servers, batch_size=200_000, linger_ms=50) as producer:
        for start in range(0, records, CHUNK):
            rows = range(start, min(start + CHUNK, records))
            keys = pa.array([b"%08d" % row for row in rows])
            values = pa.array([b"%0*d" % (VALUE_BYTES, row) for row in rows])
            producer.send_table("rows", pa.table({"key": keys, "value": values}))
        producer.flush()


def race(servers: str, records: int) -> list[dict[str, str | float]]:
    """The measurements, as `_spark_session.py` prints them."""
    python = spark_python()
    jars = ",".join(map(str, connector_jars(python)))
    command = [str(python), "-m", "benchmarks._spark_session", servers, jars, str(records), str(ROUNDS)]
    environment = os.environ | {"PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}", "PYSPARK_PYTHON": str(python)}
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True, cwd=ROOT)
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def table(measured: list[dict[str, str | float]], records: int) -> Table:
    """Medians of each path, and the median of the ratios round by round."""
    result = Table(
        title=f"Spark reads {records:,} records of {VALUE_BYTES} bytes, million rows/s", title_justify="left"
    )
    for heading in ("read", "spark-sql-kafka-0-10 4.2.0", "ottla", "ratio"):
        result.add_column(heading, justify="left" if heading == "read" else "right")
    rates: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for line in measured:
        rates[str(line["read"])][str(line["source"])].append(records / float(line["seconds"]) / 1e6)
    for read, by_source in rates.items():
        theirs, ours = by_source["kafka"], by_source["ottla"]
        ratio = median(our / their for our, their in zip(ours, theirs, strict=True))
        result.add_row(read, f"{median(theirs):.2f}", f"{median(ours):.2f}", f"{ratio:.1f} ×")
    return result


def main() -> None:
    records = int(sys.argv[1]) if len(sys.argv) > 1 else RECORDS
    with Broker(process=True) as broker:
        fill(broker.bootstrap_servers, records)
        measured = race(broker.bootstrap_servers, records)
    show(table(measured, records))


if __name__ == "__main__":
    main()
