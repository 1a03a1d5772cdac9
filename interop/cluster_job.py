"""The Spark job of `interop/test_spark_cluster.py`: copies a topic to a topic and a table, exactly once, on any
master.

Arguments: the master, the archive to ship, the broker's address, the two topics and a folder. The job prints its
progress as lines of JSON.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import ottla.spark


def ottla_of_tasks(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the path from which a task imports Ottla."""
    import ottla.spark.sink

    for _ in batches:
        yield pa.record_batch({"place": pa.array([str(ottla.spark.sink.__file__)])})


def start(spark: SparkSession, servers: str, source: str, target: str, folder: str) -> list[StreamingQuery]:
    """Start both queries."""
    stream = (
        spark.readStream.format("ottla")
        .options(subscribe=source, startingOffsets="earliest", maxOffsetsPerTrigger=2_000)
        .option("kafka.bootstrap.servers", servers)
        .load()
    )
    to_topic = (
        stream.select("key", "value")
        .writeStream.format("ottla")
        .option("kafka.bootstrap.servers", servers)
        .options(topic=target, deliveryGuarantee="exactly_once", checkpointLocation=f"{folder}/to-topic")
    )
    to_table = (
        stream.selectExpr("cast(cast(value as string) as bigint) as n", "partition", "offset")
        .writeStream.format("ottla_delta")
        .option("checkpointLocation", f"{folder}/to-table")
        .option("path", f"{folder}/table")
    )
    return [writer.trigger(availableNow=True).start() for writer in (to_topic, to_table)]


def print_event(**reported: object) -> None:
    print(json.dumps(reported), flush=True)


def main() -> None:
    master, archive, servers, source, target, folder = sys.argv[1:]
    spark = ottla.spark.session(
        "cluster",
        master,
        spark__submit__pyFiles=archive,
        spark__driver__host="127.0.0.1",
        spark__driver__bindAddress="127.0.0.1",
        spark__executor__memory="512m",
        spark__executor__cores="1",
        spark__log__level="WARN",
    )
    places = spark.range(0, 8, 1, 4).mapInArrow(ottla_of_tasks, "place string").distinct().collect()
    print_event(places=[row.place for row in places])
    queries = start(spark, servers, source, target, folder)
    while not all(query.awaitTermination(1) for query in queries):
        print_event(batches=[(query.lastProgress or {"batchId": -1})["batchId"] for query in queries])
    print_event(done=True)
    spark.stop()


if __name__ == "__main__":
    main()
