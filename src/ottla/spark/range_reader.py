"""What a Spark task does: read a range of one partition as Arrow batches in Spark's schema."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ottla.client.consumer import Consumer, RangeReader
from ottla.errors import OffsetOutOfRangeError
from ottla.spark.failure import plainly
from ottla.spark.offset_reader import consumer_settings, report_losses
from ottla.spark.options import SourceOptions
from ottla.spark.plan import Range
from ottla.spark.schema import arrow_schema

if TYPE_CHECKING:
    from pyspark.sql.datasource import InputPartition

ROWS = 10_000
"""The most rows of a batch: Spark's readers are at their best around there."""


def read_partition(options: SourceOptions, partition: InputPartition) -> Iterator[pa.RecordBatch]:
    """The rows of one task; Spark makes one without a range where there is nothing to read."""
    with plainly():
        if partition.value is not None:
            yield from read_range(options, partition.value)


def read_range(options: SourceOptions, part: Range) -> Iterator[pa.RecordBatch]:
    """The rows of `part`; with failOnDataLoss=false, those of them that are still there."""
    settings = {"default.api.timeout.ms": options.poll_timeout_ms, **consumer_settings(options)}
    schema = arrow_schema(options.include_headers)
    position = part.start
    while position < part.end:
        try:
            with RangeReader(settings, part.tp, position, part.end) as reader:
                for batch in reader.batches("us", with_headers=options.include_headers, max_rows=ROWS):
                    yield as_spark_has_it(batch, schema)
                    position = batch.column("offset")[-1].as_py() + 1
            return
        except OffsetOutOfRangeError as error:
            report_losses([str(error)], options.fail_on_data_loss)
            position = max(position + 1, earliest(settings, part))


def earliest(settings: dict[str, Any], part: Range) -> int:
    """Where what is left of the partition begins."""
    with Consumer(settings) as consumer:
        return consumer.beginning_offsets([part.tp])[part.tp]


def as_spark_has_it(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The same columns under the names and types that Spark insists on; nothing is copied that fits already."""
    columns = [column.cast(field.type) for column, field in zip(batch.columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
