"""What a Spark task does: read a range of one partition as Arrow batches in Spark's schema."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from ottla.client.consumer import Consumer, RangeReader
from ottla.errors import ErrorCode, KafkaError, KafkaTimeoutError, OffsetOutOfRangeError
from ottla.spark.columns.row_decoder import Decoding, RowDecoder
from ottla.spark.failure import plainly
from ottla.spark.options import SourceOptions
from ottla.spark.ranges.offset_reader import consumer_settings, report_losses
from ottla.spark.ranges.plan import OffsetRange
from ottla.spark.workers.garbage import settle
from ottla.spark.workers.hot_loops import warn_if_slow

if TYPE_CHECKING:
    from pyspark.sql.datasource import InputPartition

FETCH_BYTES = 8 << 20
"""What a task asks for at once, unless the user says otherwise: enough for whole batches of rows of a kilobyte."""
ROWS = 10_000
"""The most rows of a batch: Spark's readers are at their best around there."""


def read_partition(options: SourceOptions, decoding: Decoding, partition: InputPartition) -> Iterator[pa.RecordBatch]:
    """The rows of one task; Spark makes one without a range where there is nothing to read."""
    settle()
    warn_if_slow()
    with plainly():
        if partition.value is not None:
            yield from read_range(options, decoding, partition.value)


def read_range(options: SourceOptions, decoding: Decoding, part: OffsetRange) -> Iterator[pa.RecordBatch]:
    """The rows of `part`; with failOnDataLoss=false, those of them that are still there."""
    rows = RowDecoder(decoding)
    for batch in read_raw(options, part):
        yield rows.decode(batch)


def read_raw(options: SourceOptions, part: OffsetRange) -> Iterator[pa.RecordBatch]:
    """The same as a topic has them."""
    patience = {"default.api.timeout.ms": options.poll_timeout_ms}
    settings = {**patience, "max.partition.fetch.bytes": FETCH_BYTES, **consumer_settings(options)}
    position = part.start
    while position < part.end:
        try:
            with RangeReader(settings, part.tp, position, part.end, part.topic_id) as reader:
                for batch in reader.batches("us", with_headers=options.include_headers, max_rows=ROWS):
                    yield batch
                    position = batch.column("offset")[-1].as_py() + 1
            return
        except (OffsetOutOfRangeError, KafkaTimeoutError):
            loss, position = what_is_gone(options, part, position)
            if not loss:
                raise
            report_losses([loss], options.fail_on_data_loss)
        except KafkaError as error:
            if error.code != ErrorCode.INCONSISTENT_TOPIC_ID:
                raise
            rest = f"offsets {position} to {part.end - 1} of the one before were not read"
            report_losses([f"topic {part.tp.topic} was deleted and made again: {rest}"], options.fail_on_data_loss)
            return


def what_is_gone(options: SourceOptions, part: OffsetRange, position: int) -> tuple[str, int]:
    """Why nothing more comes from `position`, and where what is left of the range begins; no reason if all is there."""
    tp, end = part.tp, part.end
    with Consumer(consumer_settings(options)) as consumer:
        if tp.partition not in {info.partition for info in consumer.partitions_for(tp.topic)}:
            return f"partition {tp} is gone, and offsets {position} to {end - 1} were not read", end
        first, last = consumer.beginning_offsets([tp])[tp], consumer.end_offsets([tp])[tp]
    if position < first:
        return f"partition {tp} starts at offset {first}, after offset {position}, which is next", min(first, end)
    if last < end:
        return f"partition {tp} ends at offset {last}, and offsets up to {end - 1} were not read", end
    return "", position
