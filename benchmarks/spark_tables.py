"""Rows per second from a topic into tables: `ottla_delta` and `ottla_iceberg` against Spark's own Parquet files.

    python -m benchmarks.spark_tables [RECORDS]

One session, streams over the same topic of our broker, by turns, in batches of half a million records; a stream that
writes to `noop` says what reading alone takes. Spark's file sink is what one has without jars; only Spark knows which
of its files count.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from pyspark.sql import DataFrame, SparkSession
from rich.table import Table

import ottla.spark
from benchmarks.race import show
from benchmarks.spark_source import VALUE_BYTES, fill
from ottla import Broker

RECORDS = 1_000_000
ROUNDS = 3
SINKS = ("noop", "parquet", "ottla_delta", "ottla_iceberg")


def rows(spark: SparkSession, servers: str) -> DataFrame:
    """Key, value, place and time."""
    return (
        spark.readStream.format("ottla")
        .options(subscribe="rows", startingOffsets="earliest", maxOffsetsPerTrigger=500_000)
        .option("kafka.bootstrap.servers", servers)
        .load()
        .selectExpr("key", "value", "partition", "offset", "timestamp")
    )


def seconds(spark: SparkSession, servers: str, sink: str, folder: Path) -> float:
    """How long it takes to write the whole topic."""
    writer = rows(spark, servers).writeStream.format(sink).option("checkpointLocation", f"{folder}/{sink}-checkpoint")
    if sink == "ottla_iceberg":
        writer = writer.option("warehouse", str(folder)).option("path", "bench.rows")
    elif sink != "noop":
        writer = writer.option("path", f"{folder}/{sink}").option("compression", "zstd")
    began = time.perf_counter()
    writer.trigger(availableNow=True).start().awaitTermination()
    return time.perf_counter() - began


def measure(spark: SparkSession, servers: str) -> dict[str, list[float]]:
    """The seconds of each sink, round by round; a first round warms up."""
    found: dict[str, list[float]] = {sink: [] for sink in SINKS}
    for number in range(ROUNDS + 1):
        for sink in SINKS:
            with TemporaryDirectory(prefix="ottla-bench-") as folder:
                taken = seconds(spark, servers, sink, Path(folder))
            if number:
                found[sink].append(taken)
    return found


def table(found: dict[str, list[float]], records: int) -> Table:
    """Medians, and the median of the ratios to Parquet round by round."""
    title = f"Spark writes {records:,} records of {VALUE_BYTES} bytes from a topic, million rows/s"
    result = Table(title=title, title_justify="left")
    for heading in ("to", "rows/s", "against parquet"):
        result.add_column(heading, justify="left" if heading == "to" else "right")
    for sink, taken in found.items():
        ratio = median(theirs / ours for ours, theirs in zip(taken, found["parquet"], strict=True))
        result.add_row(sink, f"{records / median(taken) / 1e6:.2f} M", f"{ratio:.2f} ×")
    return result


def main() -> None:
    records = int(sys.argv[1]) if len(sys.argv) > 1 else RECORDS
    with Broker(process=True) as broker:
        fill(broker.bootstrap_servers, "rows", records)
        spark = ottla.spark.session("bench", "local[2]", spark__driver__memory="2g", spark__log__level="OFF")
        try:
            show(table(measure(spark, broker.bootstrap_servers), records))
        finally:
            spark.stop()


if __name__ == "__main__":
    main()
