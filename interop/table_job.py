"""A Spark job that copies a topic into tables and kills itself at a chosen point: `python -m interop.table_job`.

Arguments: the broker's address, the topic, a folder, and the point of the kill as `KIND:POINT:BATCH`, or `nothing`.
The process that reaches the point kills the driver and all of Spark with SIGKILL.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
from pyspark.sql import SparkSession
from pyspark.sql.datasource import WriterCommitMessage

import ottla.spark
from ottla.spark.tables.batch import batch_of_task
from ottla.spark.tables.sink import StreamTableSink, WrittenFiles
from ottla.spark.tables.source import DeltaSource, IcebergSource, TableSource
from tests.spark.tables.lake import Lake

DRIVER, DEATH = "OTTLA_TEST_DRIVER", "OTTLA_TEST_DEATH"
POINTS = ("a task has written", "all tasks have written", "the table has the batch")


def die_if(point: str, kind: str, batch: int) -> None:
    """Kill the driver with all its children, this process last, if this point was requested."""
    if os.environ[DEATH] == f"{kind}:{point}:{batch}":
        driver = psutil.Process(int(os.environ[DRIVER]))
        family = [driver.pid, *(process.pid for process in driver.children(recursive=True))]
        assert os.getpid() in family, "the driver's Spark has its workers from elsewhere"
        for pid in sorted(family, key=os.getpid().__eq__):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


class MortalSink(StreamTableSink):
    """The sink with kill points around its steps."""

    def __init__(self, sink: StreamTableSink, kind: str) -> None:
        super().__init__(sink.writer)
        self.kind = kind

    def write(self, iterator: Iterator[Any]) -> WrittenFiles:
        written = super().write(iterator)
        die_if(POINTS[0], self.kind, batch_of_task()[1])
        return written

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        die_if(POINTS[1], self.kind, batchId)
        super().commit(messages, batchId)
        die_if(POINTS[2], self.kind, batchId)


class MortalDelta(DeltaSource):
    @classmethod
    def name(cls) -> str:
        return "mortal_delta"

    def streamWriter(self, schema: Any, overwrite: bool) -> StreamTableSink:
        return MortalSink(super().streamWriter(schema, overwrite), "delta")


class MortalIceberg(IcebergSource):
    @classmethod
    def name(cls) -> str:
        return "mortal_iceberg"

    def streamWriter(self, schema: Any, overwrite: bool) -> StreamTableSink:
        return MortalSink(super().streamWriter(schema, overwrite), "iceberg")


MORTAL: dict[str, type[TableSource]] = {"delta": MortalDelta, "iceberg": MortalIceberg}


def copy(spark: SparkSession, servers: str, topic: str, lake: Lake) -> None:
    """Copy all numbers of the topic into the table, five hundred per batch."""
    stream = (
        spark.readStream.format("ottla")
        .options(subscribe=topic, startingOffsets="earliest", maxOffsetsPerTrigger=500)
        .option("kafka.bootstrap.servers", servers)
        .load()
    )
    query = (
        stream.selectExpr("cast(cast(value as string) as bigint) as n", "partition", "timestamp")
        .writeStream.format(f"mortal_{lake.kind}")
        .options(**lake.spark_options)
        .option("checkpointLocation", str(lake.folder / f"checkpoint-{lake.kind}"))
        .trigger(availableNow=True)
        .start(lake.table)
    )
    query.awaitTermination()


def main() -> None:
    servers, topic, folder, death = sys.argv[1:]
    os.environ |= {DRIVER: str(os.getpid()), DEATH: death}
    spark = ottla.spark.session("tables", "local[2]", spark__driver__memory="1g", spark__log__level="OFF")
    for kind, source in MORTAL.items():
        spark.dataSource.register(source)
        copy(spark, servers, topic, Lake(kind, Path(folder, kind)))
    spark.stop()


if __name__ == "__main__":
    main()
