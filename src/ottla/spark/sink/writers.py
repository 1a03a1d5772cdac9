"""The sink: writes rows as records.

With at-least-once, a task sends its rows, waits until the brokers have acknowledged all, and reports. Rows of a task
that Spark runs again are written again. With exactly-once, a task's rows are committed with its mark or with the whole
batch (`exactly_once`). A task reports only after its rows are written, so Spark never commits a batch with missing
rows.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from ottla.client.producer.config import read_producer_settings
from ottla.errors import ConfigError
from ottla.spark.exactly_once.checkpoint import Checkpoint, read_checkpoint
from ottla.spark.exactly_once.driver import abort_batch, announce_run, finish_batch, new_run
from ottla.spark.exactly_once.errors import ExactlyOnceError
from ottla.spark.exactly_once.names import Names
from ottla.spark.exactly_once.run import ExactlyOnceRun, TaskOutcome
from ottla.spark.exactly_once.task import Task
from ottla.spark.failure import without_traceback
from ottla.spark.options import SinkOptions
from ottla.spark.sink.dead_letter_count import add_dead_letters
from ottla.spark.sink.producers import cached_producer
from ottla.spark.sink.row_writer import SinkRowWriter
from ottla.spark.sink.sink_rows import SinkColumns, sink_columns
from ottla.spark.sink.task_rows import SinkRows
from ottla.spark.workers.garbage import freeze_permanent_objects
from ottla.spark.workers.hot_loops import warn_if_slow

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

log = logging.getLogger(__name__)
QUERY = "sql.streaming.queryId"
BATCH = "streaming.sql.batchId"
"""Local properties of Spark's tasks of a stream. They are not documented by Spark, so tests check them."""
TRANSACTIONS = "transactional.id"


@dataclass(frozen=True)
class WrittenRows(WriterCommitMessage):
    rows: int
    dead_letters: int = 0
    outcome: TaskOutcome | None = None


class StreamSink(DataSourceStreamArrowWriter):
    """Writes each micro-batch of a streaming query."""

    def __init__(self, options: SinkOptions, schema: StructType, run: ExactlyOnceRun | None = None) -> None:
        self.options = options
        self.columns = check_columns(options, schema)
        self.run = run
        self.checkpoint: str | None = None

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WrittenRows:  # type: ignore[override]  # so in pyspark's own
        return write_rows(self.options, self.columns, self.run, iterator)

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        commit(self.options, messages, f"batch {batchId}", batchId)

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        # Spark calls `abort` on another writer than the one that announced the batch: see OttlaSource.
        abort(self.options, messages, self.run or failed_run(self.options, self.checkpoint, batchId))


class BatchSink(DataSourceArrowWriter):
    def __init__(
        self, options: SinkOptions, schema: StructType, overwrite: bool, run: ExactlyOnceRun | None = None
    ) -> None:
        if overwrite:
            raise ConfigError('a topic cannot be overwritten; write with .mode("append")')
        self.options = options
        self.columns = check_columns(options, schema)
        self.run = run

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WrittenRows:  # type: ignore[override]  # so in pyspark's own
        return write_rows(self.options, self.columns, self.run, iterator)

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        commit(self.options, messages, "a batch write", self.options.batch_id)

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        abort(self.options, messages, self.run)


def run_of_stream(options: SinkOptions, location: str | None) -> ExactlyOnceRun | None:
    """Return the run of a micro-batch, on the driver before its tasks start; None for at-least-once."""
    if options.delivery_guarantee == "at_least_once":
        return None
    checkpoint = read_checkpoint(location, options.topic)
    return new_run(options, None) if checkpoint is None else announce_run(options, checkpoint)


def failed_run(options: SinkOptions, location: str | None, batch: int) -> ExactlyOnceRun | None:
    """Return the run of a failed micro-batch with its batch and driver; its token is not known any more."""
    if options.delivery_guarantee == "at_least_once":
        return None
    checkpoint = read_checkpoint(location, options.topic)
    return new_run(options, checkpoint) if checkpoint is not None and checkpoint.batch == batch else None


def run_of_batch(options: SinkOptions, location: str | None) -> ExactlyOnceRun | None:
    """Return the run of a batch write: a micro-batch of `write_stream`, or a write outside of a stream."""
    if options.delivery_guarantee == "at_least_once":
        return None
    if options.query_id is None or options.batch_id is None:
        return new_run(options, None, job=True)
    known = read_checkpoint(location, options.topic)
    if known is not None and (known.query, known.batch) == (options.query_id, options.batch_id):
        return announce_run(options, known)
    return announce_run(options, Checkpoint(options.query_id, options.batch_id))


def check_columns(options: SinkOptions, schema: StructType) -> SinkColumns:
    """Return the columns to write; ConfigError, on the driver, for invalid columns or producer settings."""
    settings = dict(options.kafka)
    if options.delivery_guarantee == "exactly_once":
        if TRANSACTIONS in settings:
            raise ConfigError(
                f"option kafka.{TRANSACTIONS} = {settings[TRANSACTIONS]!r}: tasks have their own ids; "
                "set their prefix with transactionalIdPrefix"
            )
        settings[TRANSACTIONS] = options.transactional_id_prefix
    elif TRANSACTIONS in settings:
        raise ConfigError(
            f"option kafka.{TRANSACTIONS} is not allowed for a sink; set deliveryGuarantee to exactly_once"
        )
    read_producer_settings(settings, {})
    return sink_columns(schema, options)


def write_rows(
    options: SinkOptions, columns: SinkColumns, run: ExactlyOnceRun | None, batches: Iterator[pa.RecordBatch]
) -> WrittenRows:
    """Write the rows of a task."""
    context = TaskContext.get()
    assert context is not None, "rows are written by tasks"
    freeze_permanent_objects()
    warn_if_slow()
    index = context.partitionId()
    query, batch = context.getLocalProperty(QUERY), context.getLocalProperty(BATCH)
    with without_traceback():
        for encoding in columns.encodings:
            batches = encoding.encode(batches)
        if run is None:
            with cached_producer(options.kafka) as producer:
                writer = SinkRowWriter(producer, options, columns, index, query or "")
                for rows in batches:
                    writer.write(rows)
                writer.flush()
            return WrittenRows(writer.rows, writer.dead)
        if run.job and batch is not None:
            raise ConfigError(
                "exactly once inside foreachBatch: a batch that Spark runs again would be written again; "
                "use ottla.spark.write_stream, which calls foreachBatch for you"
            )
        names = Names(run.prefix, run.query or query or "")
        rows_of_task = SinkRows(options, columns, index, names.query, batches)
        outcome = Task(run, names, index, number_of(run, batch)).write(rows_of_task)
        return WrittenRows(rows_of_task.rows, rows_of_task.dead, outcome)


def number_of(run: ExactlyOnceRun, from_spark: str | None) -> int | None:
    """Return the batch's number, from Spark's task and from the checkpoint; None for a write outside of a stream."""
    announced = run.announcement.batch
    if run.job:
        return None
    if from_spark is None and announced is None:
        raise ExactlyOnceError("Spark does not pass the batch number to its tasks; use ottla.spark.write_stream")
    if from_spark is not None and announced is not None and int(from_spark) != announced:
        raise ExactlyOnceError(
            f"Spark writes batch {from_spark}, but the newest in the checkpoint is {announced}: two queries run on one "
            "checkpoint; stop one of them, or give each its own checkpoint"
        )
    return announced if from_spark is None else int(from_spark)


def commit(options: SinkOptions, messages: Sequence[WriterCommitMessage | None], what: str, batch: int | None) -> None:
    """Commit on the driver, after all tasks have reported."""
    written = [message for message in messages if isinstance(message, WrittenRows)]
    with without_traceback():
        finish_batch(options, [message.outcome for message in written if message.outcome is not None])
    dead_letters = sum(message.dead_letters for message in written)
    if options.dead_letter_count_file is not None and batch is not None:
        add_dead_letters(Path(options.dead_letter_count_file), batch, dead_letters)
    already = sum(message.outcome is not None and message.outcome.already for message in written)
    log.info(
        "%s is written; rows=%d tasks=%d tasks_done_before=%d dead_letters=%d",
        what,
        sum(message.rows for message in written),
        len(written),
        already,
        dead_letters,
    )


def abort(options: SinkOptions, messages: Sequence[WriterCommitMessage | None], run: ExactlyOnceRun | None) -> None:
    """Abort on the driver, after a task has failed."""
    with without_traceback():
        abort_batch(options, [message.outcome for message in messages if isinstance(message, WrittenRows)], run)
