"""Sinks that write a batch by a function of their own: whatever the output mode, and knowing which batch it is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from ottla.pipelines.surroundings import How
from ottla.spark.failure import plainly
from ottla.spark.sink.write_stream import query_of

TaskWrite = Callable[[int, str, Iterable[pa.RecordBatch]], int]
"""Writes the rows of one task: the batch's number, the task's name, the rows; how many were written."""


def start_batches(frame: DataFrame, how: How, make: Callable[[str], TaskWrite], *, whole: bool) -> StreamingQuery:
    """Start a stream whose batches are written by what `make` returns for the query's id; `whole`: by one task, in their order."""

    def write(batch: DataFrame, number: int) -> None:
        task = make(query_of(how.checkpoint))
        parts = batch.coalesce(1) if whole else batch
        parts.mapInArrow(written_by(task, number), "rows bigint").collect()

    return how.writer(frame).foreachBatch(write).start()


def written_by(task: TaskWrite, number: int) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What a task runs."""

    def run(rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with plainly():
            count: Any = task(number, name_of_task(), rows)
            yield pa.RecordBatch.from_pydict({"rows": pa.array([count], pa.int64())})

    return run


def name_of_task() -> str:
    """The task's number in its batch."""
    from pyspark import TaskContext

    context = TaskContext.get()
    return "0" if context is None else str(context.partitionId())
