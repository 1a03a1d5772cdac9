"""Finds rows without a value that a table requires before they are written.

A key that is null or NaN equals no key: its row could neither be found nor replaced later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ottla.pipelines.dead_letters import REMEDY, BadRow, DeadLetterTopic, RefusedBatchError, short_repr
from ottla.pipelines.rows import KEPT, OFFERED
from ottla.pipelines.sinks.database.row_by_row import to_python
from ottla.pipelines.sinks.upserts import DELETED
from ottla.spark.failure import without_traceback

pc: Any = pyarrow.compute
Split = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


class Checked(NamedTuple):
    """Rows that the table accepts, and the others."""

    good: pa.Table
    bad: list[BadRow]


def check_rows(rows: pa.Table, table: str, required: Sequence[str], key: Sequence[str]) -> Checked:
    """Return the rows with all required columns, and the others with their causes. Deleted rows need only their key."""
    causes = dict[int, str]()
    for name in key:
        column = rows.column(name)
        mark_all(causes, pc.is_null(column), f"column {name!r} of the key is null")
        if pa.types.is_floating(column.type):
            mark_all(causes, pc.is_nan(column), f"column {name!r} of the key is NaN, which is equal to no value")
    for name in required:
        wrong = pc.is_null(rows.column(name))
        if DELETED in rows.column_names:
            wrong = pc.and_not(wrong, rows.column(DELETED))
        mark_all(causes, wrong, f"column {name!r} is null, which the table does not allow")
    if not causes:
        return Checked(rows, [])
    bad = [BadRow(values_of(rows, row), f"table {table}: {causes[row]}") for row in sorted(causes)]
    good = [row for row in range(rows.num_rows) if row not in causes]
    return Checked(rows.take(pa.array(good, pa.int64())), bad)


def mark_all(causes: dict[int, str], mask: Any, cause: str) -> None:
    """Set the cause of each row of a mask, unless it has one already."""
    if pc.any(mask).as_py():
        for row in pc.indices_nonzero(pc.fill_null(mask, False)).to_pylist():
            causes.setdefault(int(row), cause)


def values_of(rows: pa.Table, row: int) -> dict[str, Any]:
    """Return one row by column name."""
    one = rows.slice(row, 1)
    return {name: to_python(one.column(name))[0] for name in one.column_names if name != DELETED}


def put_aside(bad: Sequence[BadRow], dead_letters: DeadLetterTopic | None) -> None:
    """Write bad rows to the dead-letter topic; RefusedBatchError if there is none."""
    if bad and dead_letters is None:
        values = ", ".join(f"{name} = {short_repr(value)}" for name, value in bad[0].values.items())
        more = f" ({len(bad) - 1:,} more such rows)" if len(bad) > 1 else ""
        raise RefusedBatchError(
            f"{bad[0].cause} in the row {values}{more}; fill it or filter out such rows in a transform, or {REMEDY}"
        )
    if bad and dead_letters is not None:
        dead_letters.send(bad)


def without_bad_rows(frame: DataFrame, table: str, required: Sequence[str], dead_letters: DeadLetterTopic) -> DataFrame:
    """Return the stream without the rows that lack a required column; the tasks put these aside."""
    offered = frame.observe(OFFERED, F.count(F.lit(1)).alias("count"))
    kept = offered.mapInArrow(make_splitter(table, tuple(required), dead_letters), frame.schema)
    return kept.observe(KEPT, F.count(F.lit(1)).alias("count"))


def make_splitter(table: str, required: Sequence[str], dead_letters: DeadLetterTopic) -> Split:
    """Return the function that runs in each task."""

    def split(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with without_traceback():
            for batch in batches:
                good, bad = check_rows(pa.Table.from_batches([batch]), table, required, ())
                put_aside(bad, dead_letters)
                yield from good.to_batches()

    return split
