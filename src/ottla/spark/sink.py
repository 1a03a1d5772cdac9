"""The sink: rows to records, at least once.

A task sends its rows and waits until the brokers have them all; then it reports. A task or batch that Spark runs
again writes again. The rule: nothing is reported that is not written.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from ottla.client.producer.config import read_producer_settings
from ottla.errors import ConfigError
from ottla.spark.failure import plainly
from ottla.spark.options import SinkOptions
from ottla.spark.producers import cached_producer
from ottla.spark.sink_rows import SinkColumns, by_topic, sink_columns

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType


@dataclass(frozen=True)
class Written(WriterCommitMessage):
    """What a task reports: how many rows the brokers have."""

    rows: int


class StreamSink(DataSourceStreamArrowWriter):
    """Writes each micro-batch of a streaming query."""

    def __init__(self, options: SinkOptions, schema: StructType) -> None:
        self.options = options
        self.columns = checked(options, schema)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:  # type: ignore[override]  # so in pyspark's own
        return write_rows(self.options, self.columns, iterator)


class BatchSink(DataSourceArrowWriter):
    """Writes a DataFrame."""

    def __init__(self, options: SinkOptions, schema: StructType, overwrite: bool) -> None:
        if overwrite:
            raise ConfigError('a topic cannot be overwritten; write with .mode("append")')
        self.options = options
        self.columns = checked(options, schema)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:  # type: ignore[override]  # so in pyspark's own
        return write_rows(self.options, self.columns, iterator)


def checked(options: SinkOptions, schema: StructType) -> SinkColumns:
    """The columns to write; what is wrong with them or with the producer's settings is said here, on the driver."""
    read_producer_settings(options.kafka, {})
    return sink_columns(schema, options)


def write_rows(options: SinkOptions, columns: SinkColumns, batches: Iterator[pa.RecordBatch]) -> Written:
    """Send all rows and wait for the brokers' answers; the first error of any row fails the task."""
    rows = 0
    with plainly(), cached_producer(options.kafka) as producer:
        receipts = []
        for batch in batches:
            for topic, part in by_topic(batch, columns, options.topic):
                receipts.append(producer.send_table(topic, part, **columns.roles))
                rows += part.num_rows
        producer.flush()
        for receipt in receipts:
            receipt.result(0)
    return Written(rows)
