"""The inner half of `spark_source.py`: runs under pyspark 4.2 and prints a line of JSON for each measurement.

python -m benchmarks._spark_session GROUP BOOTSTRAP_SERVERS JARS RECORDS ROUNDS REGISTRY
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any
from urllib.request import urlopen

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.avro.functions import from_avro
from pyspark.sql.functions import from_json

import ottla
import ottla.spark
from benchmarks._processor_time import Meter
from benchmarks._ready_source import ReadySource

FORMATS = ("kafka", "ottla", "ready")
"""Spark's own connector, our source, and a source in Python with prepared rows."""
PARTITIONS = 6
Paths = dict[str, Callable[[], int]]
"""The measurements by source; each function returns the number of rows that it read."""
SCHEMA = (
    "id bigint, name string, price double, ok boolean, at timestamp, tags array<string>, size struct<w: int, h: int>"
)
DRIVER_ROWS = 1_000_000


class Reads:
    """The topic and the options of each source."""

    def __init__(self, spark: SparkSession, servers: str, records: int, registry: str) -> None:
        self.spark, self.servers, self.records, self.registry = spark, servers, records, registry

    def options(self, form: str, topic: str = "rows") -> dict[str, str]:
        if form == "ready":
            return {"rows": str(self.records), "partitions": str(PARTITIONS)}
        return {"kafka.bootstrap.servers": self.servers, "subscribe": topic, "startingOffsets": "earliest"}

    def topic(self, form: str, topic: str = "rows", **more: Any) -> DataFrame:
        """Run the same query for all sources; only the name of the format differs."""
        return self.spark.read.format(form).options(**self.options(form, topic), **more).load()

    def noop(self, frame: DataFrame) -> int:
        """Read all rows into `noop`."""
        frame.write.format("noop").mode("overwrite").save()
        return self.records

    def stream(self, form: str, **more: Any) -> int:
        """Read all existing records as a stream into `noop`."""
        checkpoint = tempfile.mkdtemp(prefix="ottla-bench-")
        stream = self.spark.readStream.format(form).options(**self.options(form), **more).load()
        writer = stream.writeStream.format("noop").option("checkpointLocation", checkpoint)
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
        shutil.rmtree(checkpoint)
        return self.records

    def batch(self) -> dict[str, Paths]:
        """Read a batch: one column, all columns, and with a Python function over Arrow."""
        frames = {form: self.topic(form) for form in FORMATS}
        return {
            "value only": {form: partial(self.noop, frame.select("value")) for form, frame in frames.items()},
            "all columns": {form: partial(self.noop, frame) for form, frame in frames.items()},
            "mapInArrow": {
                form: partial(self.noop, frame.select("value").mapInArrow(lengths, "bytes bigint"))
                for form, frame in frames.items()
            },
        }

    def streams(self) -> dict[str, Paths]:
        return {
            "availableNow, one batch": {form: partial(self.stream, form) for form in FORMATS},
            "availableNow, batches of 500,000": {
                form: partial(self.stream, form, maxOffsetsPerTrigger=500_000) for form in FORMATS
            },
        }

    def driver(self) -> dict[str, Paths]:
        """Read a topic in the driver: with Spark's collect, and with Ottla's helper."""
        frame = self.topic("kafka", "driver")

        def table() -> pa.Table:
            return ottla.read_table("driver", bootstrap_servers=self.servers)

        def pandas(table: Any) -> int:
            return len(table.to_pandas())

        return {
            "topic → Arrow": {"kafka": lambda: len(frame.toArrow()), "ottla": lambda: len(table())},
            "topic → pandas": {"kafka": lambda: len(frame.toPandas()), "ottla": lambda: pandas(table())},
        }

    def json(self) -> dict[str, Paths]:
        """Parse JSON values into columns."""
        texts = self.topic("kafka", "json").selectExpr("cast(value as string) as text")
        theirs = texts.select(from_json("text", SCHEMA).alias("value"))
        ours = self.topic("ottla", "json", valueFormat="json", valueSchema=SCHEMA).select("value")
        return {"JSON, then noop": {"kafka": partial(self.noop, theirs), "ottla": partial(self.noop, ours)}}

    def avro(self) -> dict[str, Paths]:
        """Read registered Avro into columns; the connector without the bytes of the schema id, and with one schema."""
        with urlopen(f"{self.registry}/subjects/avro-value/versions/latest/schema") as answer:
            schema = answer.read().decode()
        raw = self.topic("kafka", "avro").selectExpr("substring(value, 6) as value")
        theirs = raw.select(from_avro("value", schema).alias("value"))
        options = {"valueFormat": "avro", "mode": "FAILFAST", "schemaRegistryUrl": self.registry}
        ours = self.topic("ottla", "avro", **options).select("value")
        assert theirs.where("value.id = 7").collect() == ours.where("value.id = 7").collect()
        return {"registered Avro, then noop": {"kafka": partial(self.noop, theirs), "ottla": partial(self.noop, ours)}}


def lengths(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Compute the length of a column in Arrow, as an example of a small user-defined function."""
    import pyarrow.compute as pc

    for batch in batches:
        column: Any = batch.column(0)
        yield pa.RecordBatch.from_arrays([pc.binary_length(column).cast(pa.int64())], ["bytes"])


def main() -> None:
    group, servers, jars, records, rounds, registry = sys.argv[1:]
    memory = {"spark__driver__memory": "3g", "spark__jars": jars, "spark__log__level": "ERROR"}
    big = {"spark__driver__maxResultSize": "2g"}
    spark = ottla.spark.session("benchmark", "local[2]", **memory, **big)
    spark.dataSource.register(ReadySource)
    reads = Reads(spark, servers, int(records), registry)
    for name, paths in getattr(reads, group)().items():
        for run in paths.values():  # the first run of a path is two to three times slower
            assert run() >= DRIVER_ROWS or int(records) < DRIVER_ROWS
        for _ in range(int(rounds)):
            for source, run in paths.items():
                meter = Meter()
                started = time.perf_counter()
                rows = run()
                seconds = time.perf_counter() - started
                line = {"read": name, "source": source, "rows": rows, "seconds": seconds, "cpu": meter.seconds()}
                print(json.dumps(line), flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
