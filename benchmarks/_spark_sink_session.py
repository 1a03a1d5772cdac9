"""The inner half of `spark_sink.py`: runs under pyspark 4.2 and prints a line of JSON for each measurement.

python -m benchmarks._spark_sink_session BOOTSTRAP_SERVERS JARS ROWS ROUNDS BATCHES
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any
from uuid import uuid4

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import StructType

import ottla.spark
from benchmarks._counting_sink import CountingSink
from ottla import Admin, NewTopic, Producer

PARTITIONS = 6
SEED = 14
VALUE_BYTES = 100
KEY = "lpad(cast(id as string), 8, '0')"
VALUES = {
    "write": f"concat({KEY}, '{'.' * (VALUE_BYTES - 8)}')",
    "padded": f"rpad(cast(id as string), {VALUE_BYTES}, '.')",
}
"""How Spark makes a value: quickly, or by a function that takes longer than any writer."""
TUNED = {"kafka.batch.size": "262144", "kafka.linger.ms": "50", "kafka.buffer.memory": "134217728"}
NO_LIMIT = {"spark.sql.execution.arrow.maxBytesPerBatch": "2147483647"}
"""Has Spark no longer ask after each row how many bytes it has gathered for Python."""


@dataclass(frozen=True)
class Writer:
    """Who writes."""

    form: str
    options: dict[str, str] = field(default_factory=dict)
    session: dict[str, str] = field(default_factory=dict)
    """Settings of Spark's while it does."""
    mode: str = "append"


WRITERS = {
    "nobody": Writer("noop", mode="overwrite"),
    "Python that only counts": Writer("counting"),
    "kafka": Writer("kafka"),
    "kafka, tuned": Writer("kafka", TUNED),
    "ottla": Writer("ottla"),
    "ottla, no limit in bytes": Writer("ottla", session=NO_LIMIT),
    "ottla, exactly once": Writer("ottla", {"deliveryGuarantee": "exactly_once"}),
}


class Counting(DataSource):
    """The roof: what there is to be had for a sink in Python."""

    @classmethod
    def name(cls) -> str:
        return "counting"

    def writer(self, schema: StructType, overwrite: bool) -> CountingSink:
        return CountingSink()


def rows(spark: SparkSession, count: int, what: str) -> DataFrame:
    """A key of eight bytes and a value of a hundred, made by Spark itself."""
    return spark.range(0, count, 1, 2).selectExpr(f"{KEY} as key", f"{VALUES[what]} as value")


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


def written(spark: SparkSession, frame: DataFrame, admin: Admin, writer: str) -> tuple[float, float]:
    """How many seconds Spark takes to write all of it to a new topic, and how many of a processor.

    Whoever wrote before leaves nothing to do: no garbage in Java, no files that the disk is still busy with.
    """
    by, topic = WRITERS[writer], f"rows-{uuid4()}"
    admin.create_topics([NewTopic(topic, PARTITIONS)])
    for name in NO_LIMIT:
        spark.conf.unset(name)
    for name, value in by.session.items():
        spark.conf.set(name, value)
    sink = frame.write.format(by.form).options(**by.options).option("topic", topic).mode(by.mode)
    sink = sink.option("kafka.bootstrap.servers", ",".join(admin.config.bootstrap_servers))
    java = spark.sparkContext._jvm
    assert java is not None
    java.System.gc()
    started, spent = time.perf_counter(), cpu_seconds()
    sink.save()
    done = time.perf_counter() - started, cpu_seconds() - spent
    admin.delete_topics([topic])
    return done


def in_turns(spark: SparkSession, admin: Admin, what: str, count: int, rounds: int) -> None:
    """Each round has an order of its own: who comes after a heavy writer meets a disk that is busy with what that one wrote."""
    frame = rows(spark, count, what)
    for writer in WRITERS:  # the first run of a path is two to three times slower
        written(spark, rows(spark, count // 3, what), admin, writer)
    for writers in orders(list(WRITERS), rounds):
        for writer in writers:
            elapsed, spent = written(spark, frame, admin, writer)
            tell(what=what, writer=writer, rate=count / elapsed)
            tell(what=f"{what}, spent", writer=writer, rate=count / spent)


def orders(writers: list[str], rounds: int) -> list[list[str]]:
    """An order for each round, in which nobody always comes after the same."""
    chance = Random(SEED)
    return [chance.sample(writers, len(writers)) for _ in range(rounds)]


def copying(spark: SparkSession, servers: str, writer: str) -> StreamingQuery:
    """A query from a topic to another."""
    form, options = WRITERS[writer].form, WRITERS[writer].options
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
    spark.dataSource.register(Counting)
    with Admin(bootstrap_servers=servers) as admin:
        for what in VALUES:
            in_turns(spark, admin, what, int(count), int(rounds))
    spark.conf.unset(*NO_LIMIT)
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
