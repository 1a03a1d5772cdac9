"""Reads a range of one partition in a task, as Arrow batches in Spark's schema."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from ottla.client.consumer import Consumer, RangeReader
from ottla.errors import ErrorCode, KafkaError, KafkaTimeoutError, OffsetOutOfRangeError
from ottla.spark.columns.row_decoder import Decoding, RowDecoder
from ottla.spark.failure import without_traceback
from ottla.spark.options import SourceOptions
from ottla.spark.ranges.offset_reader import consumer_settings, report_losses
from ottla.spark.ranges.plan import OffsetRange
from ottla.spark.workers.garbage import freeze_permanent_objects
from ottla.spark.workers.hot_loops import warn_if_slow

if TYPE_CHECKING:
    from pyspark.sql.datasource import InputPartition

FETCH_BYTES = 8 << 20
"""The bytes that a task fetches at once by default: enough for whole batches of rows of a kilobyte."""
ROWS = 10_000
"""The most rows of a batch: Spark's readers are most efficient at about this size."""


def read_partition(options: SourceOptions, decoding: Decoding, partition: InputPartition) -> Iterator[pa.RecordBatch]:
    """Yield the rows of one task; Spark creates one without a range if there is nothing to read."""
    freeze_permanent_objects()
    warn_if_slow()
    with without_traceback():
        if partition.value is not None:
            yield from read_range(options, decoding, partition.value)


def read_range(options: SourceOptions, decoding: Decoding, part: OffsetRange) -> Iterator[pa.RecordBatch]:
    """Yield the rows of `part`; with failOnDataLoss=false, those that still exist."""
    rows = RowDecoder(decoding)
    for batch in read_raw(options, part):
        yield rows.decode(batch)


def read_raw(options: SourceOptions, part: OffsetRange) -> Iterator[pa.RecordBatch]:
    """Yield the same rows without decoding."""
    patience = {"default.api.timeout.ms": options.poll_timeout_ms}
    settings = {**patience, "max.partition.fetch.bytes": FETCH_BYTES, **consumer_settings(options)}
    with_headers = options.include_headers or bool(options.registry)  # headers may have the ids of schemas
    position = part.start
    while position < part.end:
        try:
            with RangeReader(settings, part.tp, position, part.end, part.topic_id) as reader:
                for batch in reader.batches("us", with_headers=with_headers, max_rows=ROWS):
                    yield batch
                    position = batch.column("offset")[-1].as_py() + 1
            return
        except (OffsetOutOfRangeError, KafkaTimeoutError):
            loss, position = find_loss(options, part, position)
            if not loss:
                raise
            report_losses([loss], options.fail_on_data_loss)
        except KafkaError as error:
            if error.code != ErrorCode.INCONSISTENT_TOPIC_ID:
                raise
            rest = f"offsets {position} to {part.end - 1} of the one before were not read"
            report_losses([f"topic {part.tp.topic} was deleted and created again: {rest}"], options.fail_on_data_loss)
            return


def find_loss(options: SourceOptions, part: OffsetRange, position: int) -> tuple[str, int]:
    """Return the reason why there is nothing at `position`, and the start of the remaining range; an empty reason if nothing is lost."""
    tp, end = part.tp, part.end
    with Consumer(consumer_settings(options)) as consumer:
        if tp.partition not in {info.partition for info in consumer.partitions_for(tp.topic)}:
            return f"partition {tp} does not exist any more, and offsets {position} to {end - 1} were not read", end
        first, last = consumer.beginning_offsets([tp])[tp], consumer.end_offsets([tp])[tp]
    if position < first:
        return f"partition {tp} starts at offset {first}, after offset {position}, which is next", min(first, end)
    if last < end:
        return f"partition {tp} ends at offset {last}, and offsets up to {end - 1} were not read", end
    return "", position
