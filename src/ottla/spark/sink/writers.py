"""The sink: rows to records.

At least once, a task sends its rows, waits until the brokers have them all, and reports; what Spark runs again writes
again. Exactly once, a task's rows count with its mark or with the whole batch (`exactly_once`). The rule: nothing is reported
that is not written.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from ottla.client.producer.config import read_producer_settings
from ottla.errors import ConfigError
from ottla.spark.exactly_once.checkpoint import Checkpoint, read_checkpoint
from ottla.spark.exactly_once.driver import announce, finish, give_up, new_run
from ottla.spark.exactly_once.errors import ExactlyOnceError
from ottla.spark.exactly_once.names import Names
from ottla.spark.exactly_once.run import BatchRun, TaskOutcome
from ottla.spark.exactly_once.task import Task
from ottla.spark.failure import plainly
from ottla.spark.options import SinkOptions
from ottla.spark.sink.producers import cached_producer
from ottla.spark.sink.row_writer import RowWriter
from ottla.spark.sink.sink_rows import SinkColumns, sink_columns
from ottla.spark.sink.task_rows import SinkRows
from ottla.spark.workers.garbage import settle
from ottla.spark.workers.hot_loops import warn_if_slow

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

log = logging.getLogger(__name__)
QUERY = "sql.streaming.queryId"
BATCH = "streaming.sql.batchId"
"""Properties that Spark gives the tasks of a stream. It does not document them: tests hold it to them."""
TRANSACTIONS = "transactional.id"


@dataclass(frozen=True)
class WrittenRows(WriterCommitMessage):
    rows: int
    dead_letters: int = 0
    outcome: TaskOutcome | None = None


class StreamSink(DataSourceStreamArrowWriter):
    """Writes each micro-batch of a streaming query."""

    def __init__(self, options: SinkOptions, schema: StructType, run: BatchRun | None = None) -> None:
        self.options = options
        self.columns = checked(options, schema)
        self.run = run
        self.checkpoint: str | None = None

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WrittenRows:  # type: ignore[override]  # so in pyspark's own
        return write_rows(self.options, self.columns, self.run, iterator)

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        commit(self.options, messages, f"batch {batchId}")

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        # Spark asks another writer than the one that was announced to the tasks: see OttlaSource.
        abort(self.options, messages, self.run or failed_run(self.options, self.checkpoint, batchId))


class BatchSink(DataSourceArrowWriter):
    def __init__(self, options: SinkOptions, schema: StructType, overwrite: bool, run: BatchRun | None = None) -> None:
        if overwrite:
            raise ConfigError('a topic cannot be overwritten; write with .mode("append")')
        self.options = options
        self.columns = checked(options, schema)
        self.run = run

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WrittenRows:  # type: ignore[override]  # so in pyspark's own
        return write_rows(self.options, self.columns, self.run, iterator)

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        commit(self.options, messages, "a batch write")

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        abort(self.options, messages, self.run)


def run_of_stream(options: SinkOptions, location: str | None) -> BatchRun | None:
    """Asked for on the driver before the tasks of each micro-batch: how they are to write; None: at least once."""
    if options.delivery_guarantee == "at_least_once":
        return None
    checkpoint = read_checkpoint(location, options.topic)
    return new_run(options, None) if checkpoint is None else announce(options, checkpoint)


def failed_run(options: SinkOptions, location: str | None, batch: int) -> BatchRun | None:
    """The run of a micro-batch, as far as it can be told afterwards: its batch and its driver, and not its token."""
    if options.delivery_guarantee == "at_least_once":
        return None
    checkpoint = read_checkpoint(location, options.topic)
    return new_run(options, checkpoint) if checkpoint is not None and checkpoint.batch == batch else None


def run_of_batch(options: SinkOptions, location: str | None) -> BatchRun | None:
    """The same for a batch write: of a micro-batch, where `write_stream` says so, else a job of its own."""
    if options.delivery_guarantee == "at_least_once":
        return None
    if options.query_id is None or options.batch_id is None:
        return new_run(options, None, job=True)
    known = read_checkpoint(location, options.topic)
    if known is not None and (known.query, known.batch) == (options.query_id, options.batch_id):
        return announce(options, known)
    return announce(options, Checkpoint(options.query_id, options.batch_id))


def checked(options: SinkOptions, schema: StructType) -> SinkColumns:
    """The columns to write; what is wrong with them or with the producer's settings is said here, on the driver."""
    settings = dict(options.kafka)
    if options.delivery_guarantee == "exactly_once":
        if TRANSACTIONS in settings:
            raise ConfigError(
                f"option kafka.{TRANSACTIONS} = {settings[TRANSACTIONS]!r}: tasks have names of their own; "
                "set how they begin with transactionalIdPrefix"
            )
        settings[TRANSACTIONS] = options.transactional_id_prefix
    elif TRANSACTIONS in settings:
        raise ConfigError(f"option kafka.{TRANSACTIONS} is not for a sink; set deliveryGuarantee to exactly_once")
    read_producer_settings(settings, {})
    return sink_columns(schema, options)


def write_rows(
    options: SinkOptions, columns: SinkColumns, run: BatchRun | None, batches: Iterator[pa.RecordBatch]
) -> WrittenRows:
    """What a task does with its rows."""
    context = TaskContext.get()
    assert context is not None, "rows are written by tasks"
    settle()
    warn_if_slow()
    index = context.partitionId()
    query, batch = context.getLocalProperty(QUERY), context.getLocalProperty(BATCH)
    with plainly():
        if run is None:
            with cached_producer(options.kafka) as producer:
                writer = RowWriter(producer, options, columns, index, query or "")
                for rows in batches:
                    writer.write(rows)
                writer.settle()
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


def number_of(run: BatchRun, from_spark: str | None) -> int | None:
    """The batch's number; Spark tells tasks, and the driver has read it. None for a job of its own."""
    announced = run.announcement.batch
    if run.job:
        return None
    if from_spark is None and announced is None:
        raise ExactlyOnceError("Spark does not tell its tasks the number of the batch; use ottla.spark.write_stream")
    if from_spark is not None and announced is not None and int(from_spark) != announced:
        raise ExactlyOnceError(
            f"Spark writes batch {from_spark}, but the newest in the checkpoint is {announced}: two queries run on one "
            "checkpoint; stop one of the two, or give each a checkpoint of its own"
        )
    return announced if from_spark is None else int(from_spark)


def commit(options: SinkOptions, messages: Sequence[WriterCommitMessage | None], what: str) -> None:
    """On the driver, when all tasks have reported."""
    written = [message for message in messages if isinstance(message, WrittenRows)]
    with plainly():
        finish(options, [message.outcome for message in written if message.outcome is not None])
    already = sum(message.outcome is not None and message.outcome.already for message in written)
    log.info(
        "%s is written: %d rows by %d tasks, of which %d were done before; %d dead letters",
        what,
        sum(message.rows for message in written),
        len(written),
        already,
        sum(message.dead_letters for message in written),
    )


def abort(options: SinkOptions, messages: Sequence[WriterCommitMessage | None], run: BatchRun | None) -> None:
    """On the driver, when a task has failed."""
    with plainly():
        give_up(options, [message.outcome for message in messages if isinstance(message, WrittenRows)], run)
