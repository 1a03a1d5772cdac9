"""Writes rows with one statement for each, in every database."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from ottla.pipelines.databases.copying import text_of_times
from ottla.pipelines.sinks.database.statements import Statements
from ottla.pipelines.sinks.upserts import DELETED

CHUNK = 1000


@dataclass(frozen=True)
class RowByRow:
    """Writes rows in their order: of several rows of one key the last remains."""

    connection: Any
    statements: Statements

    def add(self, rows: pa.RecordBatch) -> None:
        names = self.statements.columns
        columns = [to_python(rows.column(name)) for name in names]
        deleted = to_python(rows.column(DELETED)) if DELETED in rows.schema.names else [False] * rows.num_rows
        keys = [names.index(name) for name in self.statements.key]
        cursor = self.connection.cursor()
        for is_deleted, chunk in iter_runs(list(zip(*columns, strict=True)), deleted):
            if is_deleted:
                cursor.executemany(self.statements.delete(), [tuple(row[at] for at in keys) for row in chunk])
            else:
                cursor.executemany(self.statements.write(), chunk)

    def finish(self) -> None:
        """Do nothing: all rows are in the table."""


def iter_runs(rows: Sequence[Any], deleted: Sequence[Any]) -> Iterator[tuple[bool, list[Any]]]:
    """Yield consecutive rows with the same operation, at most `CHUNK` at a time."""
    chunk: list[Any] = []
    kind = False
    for row, one in zip(rows, deleted, strict=True):
        if chunk and (bool(one) != kind or len(chunk) >= CHUNK):
            yield kind, chunk
            chunk = []
        kind = bool(one)
        chunk.append(row)
    if chunk:
        yield kind, chunk


def to_python(column: Any) -> list[Any]:
    """Return a column as Python values for the drivers; times that Python cannot represent are text."""
    try:
        return list(column.to_pylist())
    except (OverflowError, ValueError):
        if not pa.types.is_date(column.type) and not pa.types.is_timestamp(column.type):
            raise
        return list(text_of_times(column))
