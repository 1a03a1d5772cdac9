"""Rows by a statement for each, as every database takes them."""

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
    """In their order: of several rows of one key the last counts."""

    connection: Any
    statements: Statements

    def add(self, rows: pa.RecordBatch) -> None:
        names = self.statements.columns
        columns = [plain(rows.column(name)) for name in names]
        deleted = plain(rows.column(DELETED)) if DELETED in rows.schema.names else [False] * rows.num_rows
        keys = [names.index(name) for name in self.statements.key]
        cursor = self.connection.cursor()
        for is_deleted, chunk in runs(list(zip(*columns, strict=True)), deleted):
            if is_deleted:
                cursor.executemany(self.statements.delete(), [tuple(row[at] for at in keys) for row in chunk])
            else:
                cursor.executemany(self.statements.write(), chunk)

    def finish(self) -> None:
        """There is nothing left to do."""


def runs(rows: Sequence[Any], deleted: Sequence[Any]) -> Iterator[tuple[bool, list[Any]]]:
    """Rows one after the other that are to be done alike, so many at a time."""
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


def plain(column: Any) -> list[Any]:
    """A column as the drivers take it; times that Python does not have as text."""
    try:
        return list(column.to_pylist())
    except (OverflowError, ValueError):
        if not pa.types.is_date(column.type) and not pa.types.is_timestamp(column.type):
            raise
        return list(text_of_times(column))
