"""What a task does with the rows of a batch: one transaction, with the mark first.

A batch that is done again finds its mark and is left out. Two attempts at once meet at the mark: the second waits for the first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from ottla.pipelines.databases.copying import copy_in, is_plain, means_the_same
from ottla.pipelines.databases.database import Database, DatabaseError
from ottla.pipelines.databases.table import Table
from ottla.pipelines.sinks.database.statements import Statements
from ottla.pipelines.sinks.upserts import DELETED

CHUNK = 1000


@dataclass(frozen=True)
class TableWriter:
    """Writes batches of one query into one table."""

    database: Database
    statements: Statements
    query: str

    def write(self, batch: int, rows: Iterable[pa.RecordBatch]) -> int:
        """How many rows were written; 0 where the batch was there already."""
        with self.database.connect() as connection:
            if not self.is_due(connection, batch):
                return 0
            table = self.table_for_copies(connection)
            return sum(self.write_rows(connection, each, table) for each in rows)

    def table_for_copies(self, connection: Any) -> Table | None:
        """The table, where rows may be copied into it; None where each needs a statement."""
        database, name = self.database, self.statements.table
        if database.kind != "postgresql" or self.statements.key or not is_plain(connection, database.quoted(name)):
            return None
        return database.table(connection, name)

    def is_due(self, connection: Any, batch: int) -> bool:
        """Set the mark; DatabaseError where the table is ahead of the checkpoint."""
        changed = connection.execute(self.statements.mark(), (self.query, batch)).rowcount
        if changed:
            return True
        (there,) = connection.execute(self.statements.marked(), (self.query,)).fetchone()
        if there > batch:
            raise DatabaseError(
                f"table {self.statements.table} has batch {there} of this pipeline already, so batch {batch} comes too late: the "
                "checkpoint is an old copy; restore the newest one, or begin anew under another name"
            )
        return False

    def write_rows(self, connection: Any, rows: pa.RecordBatch, table: Table | None) -> int:
        """In their order: of several rows of one key the last counts."""
        names = self.statements.columns
        if table is not None and DELETED not in rows.schema.names and means_the_same(table, names, rows.schema):
            copy_in(connection, self.statements.target(), rows.select(list(names)))
            return rows.num_rows
        cursor = connection.cursor()
        columns = [plain(rows.column(name)) for name in names]
        deleted = (
            list(map(bool, rows.column(DELETED).to_pylist()))
            if DELETED in rows.schema.names
            else [False] * rows.num_rows
        )
        keys = [names.index(name) for name in self.statements.key]
        for is_deleted, chunk in runs(list(zip(*columns, strict=True)), deleted):
            wanted = [tuple(row[at] for at in keys) for row in chunk]
            self.check_keys(wanted)
            if is_deleted:
                cursor.executemany(self.statements.delete(), wanted)
            else:
                cursor.executemany(self.statements.write(), chunk)
        return rows.num_rows

    def check_keys(self, keys: Sequence[tuple[Any, ...]]) -> None:
        if any(None in key for key in keys):
            raise DatabaseError(
                f"table {self.statements.table}: a row has no {' or '.join(self.statements.key)}, which pk.fields names; leave such "
                "rows out in a step, or name other columns"
            )


def runs(rows: Sequence[Any], deleted: Sequence[bool]) -> Iterator[tuple[bool, list[Any]]]:
    """Rows one after the other that are to be done alike, so many at a time."""
    chunk: list[Any] = []
    kind = False
    for row, is_deleted in zip(rows, deleted, strict=True):
        if chunk and (is_deleted != kind or len(chunk) >= CHUNK):
            yield kind, chunk
            chunk = []
        kind = is_deleted
        chunk.append(row)
    if chunk:
        yield kind, chunk


def plain(column: Any) -> list[Any]:
    """A column as the drivers take it."""
    return list(column.to_pylist())
