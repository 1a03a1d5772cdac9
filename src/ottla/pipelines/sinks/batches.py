"""Sinks that write each batch with a function, in every output mode, together with a mark of the batch.

`foreachBatch` is at-least-once: after a failure Spark calls it again with the same batch number, and the checkpoint's
offset log gives it the same rows. A sink becomes exactly-once if it stores the `BatchMark` (query id, batch number,
digest of the batch's offsets) in the transaction of the rows, and skips a batch with a stored mark. The digest detects
a copied checkpoint, with the same numbers but other rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from ottla.pipelines.pipeline_context import QuerySettings
from ottla.spark.failure import without_traceback
from ottla.spark.sink.write_stream import query_of
from ottla.spark.tables.batch import offsets_digest
from ottla.spark.tables.guard import BatchMark


class WrittenCounts(NamedTuple):
    """The number of rows of a task or a batch."""

    rows: int
    dead_letters: int = 0
    """Rows put aside."""


TaskWrite = Callable[[BatchMark, str, Iterable[pa.RecordBatch]], WrittenCounts]
"""Writes the rows of one task, given the mark of the batch, the name of the task and the rows."""


def start_batches(
    frame: DataFrame, query_settings: QuerySettings, make: Callable[[str], TaskWrite], *, whole: bool
) -> StreamingQuery:
    """Start a query with batches written by the function that `make` returns for the query's id.

    With `whole`, one task writes each batch, in the order of its rows.
    """

    def write(batch: DataFrame, number: int) -> None:
        query = query_of(query_settings.checkpoint)
        mark = BatchMark(query, number, offsets_digest(query_settings.checkpoint, number))
        parts = batch.coalesce(1) if whole else batch
        written = parts.mapInArrow(written_by(make(query), mark), "rows bigint, dead_letters bigint").collect()
        query_settings.count_dead_letters(sum(one["dead_letters"] for one in written))

    return query_settings.writer(frame).foreachBatch(write).start()


def written_by(task: TaskWrite, mark: BatchMark) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return the function that runs in each task."""

    def run(rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with without_traceback():
            written = task(mark, name_of_task(), rows)
            counts: Any = {name: pa.array([count], pa.int64()) for name, count in written._asdict().items()}
            yield pa.RecordBatch.from_pydict(counts)

    return run


def name_of_task() -> str:
    """Return the task's number in its batch as text."""
    from pyspark import TaskContext

    context = TaskContext.get()
    return "0" if context is None else str(context.partitionId())
