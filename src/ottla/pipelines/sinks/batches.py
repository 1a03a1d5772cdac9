"""Sinks that write a batch by a function of their own, in every output mode, with the mark of the batch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from ottla.pipelines.surroundings import How
from ottla.spark.failure import plainly
from ottla.spark.sink.write_stream import query_of
from ottla.spark.tables.batch import offsets_digest
from ottla.spark.tables.guard import BatchMark


class Written(NamedTuple):
    """The rows of a task or of a batch."""

    rows: int
    dead_letters: int = 0
    """Rows that were put aside."""


TaskWrite = Callable[[BatchMark, str, Iterable[pa.RecordBatch]], Written]
"""Write the rows of one task, given the mark of the batch, the name of the task and the rows."""


def start_batches(frame: DataFrame, how: How, make: Callable[[str], TaskWrite], *, whole: bool) -> StreamingQuery:
    """Start a stream whose batches are written by the function that `make` returns for the query's id.

    With `whole` one task writes each batch, in the order of its rows.
    """

    def write(batch: DataFrame, number: int) -> None:
        query = query_of(how.checkpoint)
        mark = BatchMark(query, number, offsets_digest(how.checkpoint, number))
        parts = batch.coalesce(1) if whole else batch
        written = parts.mapInArrow(written_by(make(query), mark), "rows bigint, dead_letters bigint").collect()
        how.count_dead_letters(sum(one["dead_letters"] for one in written))

    return how.writer(frame).foreachBatch(write).start()


def written_by(task: TaskWrite, mark: BatchMark) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return the function that each task runs."""

    def run(rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with plainly():
            written = task(mark, name_of_task(), rows)
            counts: Any = {name: pa.array([count], pa.int64()) for name, count in written._asdict().items()}
            yield pa.RecordBatch.from_pydict(counts)

    return run


def name_of_task() -> str:
    """Return the number of the task in its batch."""
    from pyspark import TaskContext

    context = TaskContext.get()
    return "0" if context is None else str(context.partitionId())
