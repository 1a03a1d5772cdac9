"""Writes the rows of a batch in one transaction, with the batch's mark first.

Exactly-once depends on this order. The statement of the mark takes the lock on the query's row in `ottla_batches`
before any row is written, and changes no row if the batch is marked. So a batch that Spark runs again after a failure
finds its mark and is skipped, and of two concurrent attempts (a speculative task, or a task that Spark declared lost)
the second waits until the first commits or rolls back. Mark and rows commit together, because both are in one
transaction. Dead letters are sent before the commit: a crash in between sends them twice, and never loses them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from typing import Any, Protocol

import pyarrow as pa
from pyspark.sql.types import IntegerType, LongType, ShortType, StringType

from ottla.errors import ConfigError
from ottla.pipelines.databases.binary_copy import is_binary_compatible
from ottla.pipelines.databases.copying import copy_in, has_same_text_form, is_plain
from ottla.pipelines.databases.database import Database, DatabaseError, RefusedRowError
from ottla.pipelines.databases.table import Table, TableColumn
from ottla.pipelines.dead_letters import REMEDY, BadRow, DeadLetterTopic, short_repr
from ottla.pipelines.sinks.batches import WrittenCounts
from ottla.pipelines.sinks.database.row_by_row import RowByRow, to_python
from ottla.pipelines.sinks.database.staged_rows import StagedRows, can_be_staged
from ottla.pipelines.sinks.database.statements import Statements

ROW_ERRORS = (RefusedRowError, pa.ArrowInvalid, OverflowError, UnicodeError)
"""Errors that a value of a row can cause: the database rejects it, or its driver or Arrow cannot encode it."""


class RolledBackError(Exception):
    """A trial transaction is rolled back."""


class WriteMethod(Protocol):
    """A way to write the rows of one transaction into their table."""

    def add(self, rows: pa.RecordBatch) -> None:
        """Write a batch of rows."""

    def finish(self) -> None:
        """Write rows that are still buffered; no more rows follow."""


@dataclass(frozen=True)
class DatabaseTableWriter:
    """Write a batch of rows."""

    database: Database
    statements: Statements
    query: str
    dead_letters: DeadLetterTopic | None = None
    """The dead-letter topic for rows that the table rejects; None: the batch fails."""

    def write(self, batch: int, rows: Iterable[pa.RecordBatch], offsets: str | None = None) -> WrittenCounts:
        """Write a batch and its mark; no row if the batch was written before. `offsets` is the digest of its offsets."""
        if self.dead_letters is None:
            return WrittenCounts(self.write_strictly(batch, offsets, rows))
        held = list(rows)
        with suppress(*ROW_ERRORS):
            return WrittenCounts(self.write_all(batch, offsets, held))
        # After the handler: its traceback would keep a cursor alive, and with it SQLite's lock.
        return self.write_good(batch, offsets, held, self.dead_letters)

    def write_strictly(self, batch: int, offsets: str | None, rows: Iterable[pa.RecordBatch]) -> int:
        """Write all rows; RefusedRowError, with the row, if one of them is rejected."""
        last: list[pa.RecordBatch] = []

        def remembered() -> Iterator[pa.RecordBatch]:
            for each in rows:
                last[:] = [each]
                yield each

        try:
            return self.write_all(batch, offsets, remembered())
        except ROW_ERRORS as error:
            text = " ".join(str(error).split()) or type(error).__name__
        # After the handler, as above.
        found = self.first_refused(last[0]) if last else None
        if found is not None:
            row = ", ".join(f"{name} = {short_repr(value)}" for name, value in found.values.items())
            text = f"table {self.statements.table}: row {row}: {found.cause}"
        raise RefusedRowError(f"{text}; correct such rows or filter them out in a transform, or {REMEDY}")

    def first_refused(self, rows: pa.RecordBatch) -> BadRow | None:
        """Return the first of some rows that the table rejects, and write none; None if it accepts these rows alone."""
        refused: list[BadRow] = []
        with suppress(RolledBackError, DatabaseError), self.database.connect() as connection:
            table = self.database.describe_table(connection, self.statements.table)
            self.try_rows(connection, rows, table, refused, is_trial=True)
            raise RolledBackError
        return refused[0] if refused else None

    def write_good(
        self, batch: int, offsets: str | None, held: Iterable[pa.RecordBatch], dead_letters: DeadLetterTopic
    ) -> WrittenCounts:
        """Write the rows that the table accepts, by statements, and put aside the others before the transaction commits."""
        with self.database.connect() as connection:
            if not self.is_due(connection, batch, offsets):
                return WrittenCounts(0)
            table = self.database.describe_table(connection, self.statements.table)
            refused: list[BadRow] = []
            count = sum(self.try_rows(connection, rows, table, refused) for rows in held)
            if refused:
                dead_letters.send(refused)
            return WrittenCounts(count, len(refused))

    def try_rows(
        self, connection: Any, rows: pa.RecordBatch, table: Table, refused: list[BadRow], *, is_trial: bool = False
    ) -> int:
        """Write rows, in halves if one of them is rejected; return the number written.

        A trial ends at the first rejected row.
        """
        if not rows.num_rows:
            return 0
        connection.execute("savepoint ottla_rows")
        try:
            with self.database.translated_errors():
                self.check_keys(rows)
                RowByRow(connection, self.statements).add(rows)
        except ROW_ERRORS as error:
            connection.execute("rollback to savepoint ottla_rows")
            if rows.num_rows == 1:
                values = {name: to_python(rows.column(name))[0] for name in self.statements.columns}
                refused.append(BadRow(values, cause_of(error, table, values)))
                if is_trial:
                    raise RolledBackError from None
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
        """Raise DatabaseError, with the remedy, if the table lost a column, which some databases report as a syntax error."""
        with suppress(ConfigError):  # the table does not exist any more
            connection = self.database.open()
            try:
                self.check_columns(self.database.describe_table(connection, self.statements.table))
            finally:
                connection.close()

    def is_due(self, connection: Any, batch: int, offsets: str | None) -> bool:
        """Write the mark, and return False if it was there already; DatabaseError if it belongs to another batch or a later one."""
        changed = connection.execute(self.statements.mark(), (self.query, batch, offsets)).rowcount
        if changed:
            return True
        there, known = connection.execute(self.statements.marked(), (self.query,)).fetchone()
        if there > batch:
            raise DatabaseError(
                f"table {self.statements.table} has batch {there} of this pipeline already, so batch {batch} is too late: the "
                "checkpoint is an old copy; restore the newest one, or start again under another name"
            )
        if None not in (known, offsets) and known != offsets:
            raise DatabaseError(
                f"table {self.statements.table} has another batch {batch} of this pipeline, with other offsets: two pipelines use "
                "copies of one checkpoint; stop one of them, or start again under another name"
            )
        return False

    def write_rows(self, connection: Any, rows: Iterable[pa.RecordBatch]) -> int:
        """Write the rows in the way that fits the first batch's schema; return their number.

        Of several rows of one key the last remains.
        """
        ready, count = iter(rows), 0
        first = next(ready, None)
        if first is None:
            return 0
        way = self.choose_method(connection, first.schema)
        for each in chain([first], ready):
            self.check_keys(each)
            way.add(each)
            count += each.num_rows
        way.finish()
        return count

    def choose_method(self, connection: Any, schema: pa.Schema) -> WriteMethod:
        """Return the fastest way with the same result as one statement for each row."""
        database, statements = self.database, self.statements
        alone = can_be_staged if statements.key else is_plain
        if database.kind == "postgresql" and alone(connection, database.quote_table(statements.table)):
            table = database.describe_table(connection, statements.table)
            self.check_columns(table)
            if has_same_text_form(table, statements.columns, schema):
                as_it_is = is_binary_compatible(table, statements.columns, schema)
                return (StagedRows if statements.key else CopyInRows)(connection, statements, as_it_is)
        return RowByRow(connection, statements)

    def check_columns(self, table: Table) -> None:
        """Raise DatabaseError if a column was dropped or renamed since the pipeline started."""
        there = [one.name for one in table.columns]
        for name in self.statements.columns:
            if name not in there:
                raise DatabaseError(
                    f"table {table.name} lost the column {name!r}, and has {', '.join(there)}; put it back, and the pipeline continues by itself, or "
                    "drop the column in a transform and restart the pipeline"
                )

    def check_keys(self, rows: pa.RecordBatch) -> None:
        if any(rows.column(name).null_count for name in self.statements.key):
            raise RefusedRowError(
                f"table {self.statements.table}: a row has no {' or '.join(self.statements.key)}, a column of pk.fields; filter out such "
                "rows in a transform, or choose other columns"
            )


@dataclass(frozen=True)
class CopyInRows:
    """Copies rows directly into their table."""

    connection: Any
    statements: Statements
    as_it_is: bool
    """True if the values' bytes have the binary format of the columns."""

    def add(self, rows: pa.RecordBatch) -> None:
        copy_in(self.connection, self.statements.target(), rows.select(list(self.statements.columns)), self.as_it_is)

    def finish(self) -> None:
        """Do nothing: all rows are in the table."""


LIMITS: dict[type[Any], int] = {ShortType: 15, IntegerType: 31, LongType: 63}
LENGTH = re.compile(r"char\w*(?: varying)?\((\d+)\)")


def cause_of(error: Exception, table: Table, values: Mapping[str, Any]) -> str:
    """Return the cause, with the column if the database does not name it."""
    text = " ".join(str(error).split()) or type(error).__name__
    for name, wrong in wrong_columns(table, values):
        return f"column {name!r} {wrong}: {text}"
    return text


def wrong_columns(table: Table, values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the columns with values that do not fit, and the reason."""
    for column in table.columns:
        if column.name in values and (wrong := describe_misfit(column, values[column.name])) is not None:
            yield column.name, wrong


def describe_misfit(column: TableColumn, value: Any) -> str | None:
    """Return the reason why a value does not fit its column's type, or None if none is known."""
    if isinstance(value, str) and "\0" in value:
        return "has the character NUL"
    bits = LIMITS.get(type(column.kind))
    if isinstance(value, int) and bits is not None and not -(1 << bits) <= value < 1 << bits:
        return f"is {column.type}, which {value} does not fit into"
    length = LENGTH.search(column.type)
    if isinstance(value, str) and isinstance(column.kind, StringType) and length and len(value) > int(length[1]):
        return f"is {column.type}, and the value has {len(value)} characters"
    return None
