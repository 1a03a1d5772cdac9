"""The inner half of `spark_sink.py`: runs under pyspark 4.2 and prints a line of JSON for each measurement.

python -m benchmarks._spark_sink_session BOOTSTRAP_SERVERS JARS ROWS ROUNDS BATCHES
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import ottla.spark
from ottla import Admin, NewTopic, Producer

VALUE_BYTES = 100
TUNED = {"kafka.batch.size": "262144", "kafka.linger.ms": "50", "kafka.buffer.memory": "134217728"}
WRITERS: dict[str, tuple[str, dict[str, str]]] = {
    "kafka": ("kafka", {}),
    "kafka, tuned": ("kafka", TUNED),
    "ottla": ("ottla", {}),
    "ottla, exactly once": ("ottla", {"deliveryGuarantee": "exactly_once"}),
}


def rows(spark: SparkSession, count: int) -> DataFrame:
    """A key of eight bytes and a value of a hundred, made by Spark itself."""
    key, value = "lpad(cast(id as string), 8, '0')", f"rpad(cast(id as string), {VALUE_BYTES}, '.')"
    return spark.range(0, count, 1, 2).selectExpr(f"{key} as key", f"{value} as value")


def cpu_seconds() -> float:
    """Of this process and all it has started: Java, and the workers of Python."""
    parents, spent = {}, {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents[int(stat.parent.name)] = int(fields[1])
        spent[int(stat.parent.name)] = sum(map(int, fields[11:15]))
    mine = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in mine and pid not in mine}:
        mine |= more
    return sum(spent.get(pid, 0) for pid in mine) / os.sysconf("SC_CLK_TCK")


def written(frame: DataFrame, servers: str, writer: str) -> tuple[float, float]:
    """How many seconds Spark takes to write all of it, and how many of a processor."""
    form, options = WRITERS[writer]
    started, spent = time.perf_counter(), cpu_seconds()
    frame.write.format(form).options(**options).option("kafka.bootstrap.servers", servers).option("topic", "rows").save(
        mode="append"
    )
    return time.perf_counter() - started, cpu_seconds() - spent


def copying(spark: SparkSession, servers: str, writer: str) -> StreamingQuery:
    """A query from a topic to another."""
    form, options = WRITERS[writer]
    name = writer.replace(", ", "-").replace(" ", "-")
    with Admin(bootstrap_servers=servers) as admin:
        admin.create_topics([NewTopic(f"{name}-in", 1), NewTopic(f"{name}-out", 1)])
    where = {"kafka.bootstrap.servers": servers}
    read = {**where, "subscribe": f"{name}-in", "startingOffsets": "earliest"}
    frame = spark.readStream.format(form).options(**read).load().select("key", "value")
    return (
        frame.writeStream.format(form)
        .options(**where, **options, topic=f"{name}-out", checkpointLocation=tempfile.mkdtemp())
        .queryName(name)
        .start()
    )


def one_batch(query: StreamingQuery, producer: Producer) -> float:
    """Milliseconds of the micro-batch that copies five new records."""
    before = {progress["batchId"] for progress in progresses(query)}
    futures = [producer.send(f"{query.name}-in", b"value", key=b"key") for _ in range(5)]
    for future in futures:
        future.result(10)
    while True:
        if (error := query.exception()) is not None:
            raise error
        for progress in progresses(query):
            if progress["batchId"] not in before and progress["numInputRows"]:
                return float(progress["durationMs"]["triggerExecution"])
        time.sleep(0.02)


def progresses(query: StreamingQuery) -> list[Any]:
    return [json.loads(progress.json) for progress in query.recentProgress]


def tell(**line: Any) -> None:
    print(json.dumps(line), flush=True)


def main() -> None:
    servers, jars, count, rounds, batches = sys.argv[1:]
    memory = {"spark__driver__memory": "2g", "spark__jars": jars, "spark__log__level": "ERROR"}
    spark = ottla.spark.session("benchmark", "local[2]", **memory)
    frame = rows(spark, int(count))
    for writer in WRITERS:  # the first run of a path is two to three times slower
        written(rows(spark, int(count) // 4), servers, writer)
    for _ in range(int(rounds)):
        for writer in WRITERS:
            elapsed, spent = written(frame, servers, writer)
            tell(what="write", writer=writer, rate=int(count) / elapsed)
            tell(what="spent", writer=writer, rate=int(count) / spent)
    with Producer(bootstrap_servers=servers, linger_ms=0) as producer:
        queries = {writer: copying(spark, servers, writer) for writer in ("kafka", "ottla", "ottla, exactly once")}
        for number in range(int(batches)):
            for writer, query in queries.items():
                span = one_batch(query, producer)
                if number >= 5:
                    tell(what="batch", writer=writer, rate=span)
        for query in queries.values():
            query.stop()
    spark.stop()


if __name__ == "__main__":
    main()
