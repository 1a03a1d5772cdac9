"""What a task does with the rows of a batch: one transaction, with the mark first.

A batch that is done again finds its mark and is left out. Two attempts at once meet at the mark: the second waits for the first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from typing import Any, Protocol

import pyarrow as pa

from ottla.errors import ConfigError
from ottla.pipelines.databases.binary_copy import goes_as_it_is
from ottla.pipelines.databases.copying import is_plain, means_the_same
from ottla.pipelines.databases.database import Database, DatabaseError, RefusedRowError
from ottla.pipelines.databases.table import Table
from ottla.pipelines.dead_letters import REMEDY, BadRow, DeadLetterTopic, shown
from ottla.pipelines.sinks.batches import Written
from ottla.pipelines.sinks.database.copied_rows import CopiedRows
from ottla.pipelines.sinks.database.refused_rows import cause_of
from ottla.pipelines.sinks.database.row_by_row import RowByRow, plain
from ottla.pipelines.sinks.database.staged_rows import StagedRows, can_be_staged
from ottla.pipelines.sinks.database.statements import Statements

OF_A_ROW = (RefusedRowError, pa.ArrowInvalid, OverflowError, UnicodeError)
"""What a value of a row is to blame for: the database refuses it, or its driver or Arrow cannot write it."""


class UndoneError(Exception):
    """A transaction that was a trial is rolled back."""


class Way(Protocol):
    """How the rows of one transaction get into their table."""

    def add(self, rows: pa.RecordBatch) -> None:
        """Rows after those before them."""

    def finish(self) -> None:
        """These were all."""


@dataclass(frozen=True)
class TableWriter:
    """Writes batches of one query into one table."""

    database: Database
    statements: Statements
    query: str
    letters: DeadLetterTopic | None = None
    """Where rows are put aside that the table refuses; None: the batch fails."""

    def write(self, batch: int, rows: Iterable[pa.RecordBatch], offsets: str | None = None) -> Written:
        """Write a batch and its mark; no row if the batch was written before. `offsets` is the digest of its offsets."""
        if self.letters is None:
            return Written(self.write_strictly(batch, offsets, rows))
        held = list(rows)
        with suppress(*OF_A_ROW):
            return Written(self.write_all(batch, offsets, held))
        # Outside of the handler, whose traceback would keep a cursor, and with it SQLite's lock.
        return self.write_good(batch, offsets, held, self.letters)

    def write_strictly(self, batch: int, offsets: str | None, rows: Iterable[pa.RecordBatch]) -> int:
        """Write all rows; RefusedRowError, with the row, if one of them is refused."""
        last: list[pa.RecordBatch] = []

        def remembered() -> Iterator[pa.RecordBatch]:
            for each in rows:
                last[:] = [each]
                yield each

        try:
            return self.write_all(batch, offsets, remembered())
        except OF_A_ROW as error:
            told = " ".join(str(error).split()) or type(error).__name__
        # Outside of the handler, as above.
        found = self.first_refused(last[0]) if last else None
        if found is not None:
            row = ", ".join(f"{name} = {shown(value)}" for name, value in found.values.items())
            told = f"table {self.statements.table}: row {row}: {found.cause}"
        raise RefusedRowError(f"{told}; correct such rows or leave them out in a step, or {REMEDY}")

    def first_refused(self, rows: pa.RecordBatch) -> BadRow | None:
        """Return the first of some rows that the table refuses, and write none; None if it takes these rows alone."""
        refused: list[BadRow] = []
        with suppress(UndoneError, DatabaseError), self.database.connect() as connection:
            table = self.database.table(connection, self.statements.table)
            self.try_rows(connection, rows, table, refused, is_trial=True)
            raise UndoneError
        return refused[0] if refused else None

    def write_good(
        self, batch: int, offsets: str | None, held: Iterable[pa.RecordBatch], letters: DeadLetterTopic
    ) -> Written:
        """Write the rows that the table takes, by statements, and put aside the others before the transaction commits."""
        with self.database.connect() as connection:
            if not self.is_due(connection, batch, offsets):
                return Written(0)
            table = self.database.table(connection, self.statements.table)
            refused: list[BadRow] = []
            count = sum(self.try_rows(connection, rows, table, refused) for rows in held)
            if refused:
                letters.send(refused)
            return Written(count, len(refused))

    def try_rows(
        self, connection: Any, rows: pa.RecordBatch, table: Table, refused: list[BadRow], *, is_trial: bool = False
    ) -> int:
        """Write rows, by halves if one of them is refused; return how many were written. A trial ends at the first refused row."""
        if not rows.num_rows:
            return 0
        connection.execute("savepoint ottla_rows")
        try:
            with self.database.telling():
                self.check_keys(rows)
                RowByRow(connection, self.statements).add(rows)
        except OF_A_ROW as error:
            connection.execute("rollback to savepoint ottla_rows")
            if rows.num_rows == 1:
                values = {name: plain(rows.column(name))[0] for name in self.statements.columns}
                refused.append(BadRow(values, cause_of(error, table, values)))
                if is_trial:
                    raise UndoneError from None
                return 0
            half = rows.num_rows // 2
            parts = (rows.slice(0, half), rows.slice(half))
            return sum(self.try_rows(connection, part, table, refused, is_trial=is_trial) for part in parts)
        connection.execute("release savepoint ottla_rows")
        return rows.num_rows

    def write_all(self, batch: int, offsets: str | None, rows: Iterable[pa.RecordBatch]) -> int:
        """Write all rows, or raise an error and write none; return their number."""
        try:
            with self.database.connect() as connection:
                return self.write_rows(connection, rows) if self.is_due(connection, batch, offsets) else 0
        except RefusedRowError:
            raise
        except DatabaseError:
            self.explain_missing_columns()
            raise

    def explain_missing_columns(self) -> None:
        """DatabaseError, with the remedy, if the table lost a column; some databases report that as an error of syntax."""
        with suppress(ConfigError):  # the table is gone altogether
            connection = self.database.open()
            try:
                self.check_columns(self.database.table(connection, self.statements.table))
            finally:
                connection.close()

    def is_due(self, connection: Any, batch: int, offsets: str | None) -> bool:
        """Set the mark, and return False if it was set before; DatabaseError if it belongs to another or a later batch."""
        changed = connection.execute(self.statements.mark(), (self.query, batch, offsets)).rowcount
        if changed:
            return True
        there, known = connection.execute(self.statements.marked(), (self.query,)).fetchone()
        if there > batch:
            raise DatabaseError(
                f"table {self.statements.table} has batch {there} of this pipeline already, so batch {batch} comes too late: the "
                "checkpoint is an old copy; restore the newest one, or begin anew under another name"
            )
        if None not in (known, offsets) and known != offsets:
            raise DatabaseError(
                f"table {self.statements.table} has another batch {batch} of this pipeline, with other offsets: two pipelines use "
                "copies of one checkpoint; stop one of them, or begin anew under another name"
            )
        return False

    def write_rows(self, connection: Any, rows: Iterable[pa.RecordBatch]) -> int:
        """All that the first tells how to write; of several rows of one key the last counts."""
        ready, count = iter(rows), 0
        first = next(ready, None)
        if first is None:
            return 0
        way = self.way(connection, first.schema)
        for each in chain([first], ready):
            self.check_keys(each)
            way.add(each)
            count += each.num_rows
        way.finish()
        return count

    def way(self, connection: Any, schema: pa.Schema) -> Way:
        """The quickest that leaves what a statement for each row would."""
        database, statements = self.database, self.statements
        alone = can_be_staged if statements.key else is_plain
        if database.kind == "postgresql" and alone(connection, database.quoted(statements.table)):
            table = database.table(connection, statements.table)
            self.check_columns(table)
            if means_the_same(table, statements.columns, schema):
                as_it_is = goes_as_it_is(table, statements.columns, schema)
                return (StagedRows if statements.key else CopiedRows)(connection, statements, as_it_is)
        return RowByRow(connection, statements)

    def check_columns(self, table: Table) -> None:
        """DatabaseError where one was taken away or renamed since the pipeline was started."""
        there = [one.name for one in table.columns]
        for name in self.statements.columns:
            if name not in there:
                raise DatabaseError(
                    f"table {table.name} lost the column {name!r}, and has {', '.join(there)}; put it back, and it goes on by itself, or "
                    "leave the column out in a step and restart the pipeline"
                )

    def check_keys(self, rows: pa.RecordBatch) -> None:
        if any(rows.column(name).null_count for name in self.statements.key):
            raise RefusedRowError(
                f"table {self.statements.table}: a row has no {' or '.join(self.statements.key)}, which pk.fields names; leave such "
                "rows out in a step, or name other columns"
            )
