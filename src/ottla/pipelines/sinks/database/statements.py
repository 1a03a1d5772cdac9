"""The SQL statements of a database sink."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ottla.pipelines.databases.database import Database, DatabaseError

MARKS = "ottla_batches"
"""The table of marks: the last batch of each query, written in the transaction of its rows."""
OFFSETS = "offsets varchar(64)"


@dataclass(frozen=True)
class Statements:
    """The statements for one table."""

    database: Database
    table: str
    columns: tuple[str, ...]
    key: tuple[str, ...] = ()
    """The columns that identify a row for upserts; empty if rows are only inserted."""

    def create(self, types: Sequence[str]) -> str:
        """Return the statement that creates the table; columns of the key are not null."""
        quote = self.database.quote_column
        parts = [
            f"{quote(name)} {kind}{' not null' if name in self.key else ''}"
            for name, kind in zip(self.columns, types, strict=True)
        ]
        parts += [f"primary key ({', '.join(map(quote, self.key))})"] if self.key else []
        return f"create table if not exists {self.database.quote_table(self.table)} ({', '.join(parts)}){self.database.creation}"

    def target(self) -> str:
        """Return the table with the columns that are written."""
        names = ", ".join(map(self.database.quote_column, self.columns))
        return f"{self.database.quote_table(self.table)} ({names})"

    def write(self) -> str:
        """Return the statement that writes one row."""
        text = f"insert into {self.target()} values ({', '.join([self.database.placeholder] * len(self.columns))})"
        return f"{text} {self.conflict()}" if self.key else text

    def conflict(self) -> str:
        """Return the clause for a row with an existing key."""
        quote = self.database.quote_column
        others = [quote(name) for name in self.columns if name not in self.key]
        return self.database.upsert_clause([quote(name) for name in self.key], others)

    def delete(self) -> str:
        """Return the statement that deletes the row of a key."""
        where = " and ".join(f"{self.database.quote_column(name)} = {self.database.placeholder}" for name in self.key)
        return f"delete from {self.database.quote_table(self.table)} where {where}"

    def create_marks(self) -> str:
        """Return the statement that creates the table of marks.

        `offsets` is the digest of the batch's entry in Spark's offset log, or null.
        """
        columns = f"query varchar(200) primary key, batch bigint not null, {OFFSETS}"
        return f"create table if not exists {MARKS} ({columns}){self.database.creation}"

    def mark(self) -> str:
        """Return the statement that writes a mark.

        It changes no row if this batch or a later one is marked, and waits for a concurrent attempt.
        """
        value = self.database.placeholder
        raised = self.database.raise_clause(MARKS, "query", "batch", "offsets")
        return f"insert into {MARKS} (query, batch, offsets) values ({value}, {value}, {value}) {raised}"

    def marked(self) -> str:
        return f"select batch, offsets from {MARKS} where query = {self.database.placeholder}"


def add_offsets(database: Database, connection: Any) -> None:
    """Add the column `offsets` to a table of marks made by an earlier version."""
    if has_offsets(database, connection):
        return
    statement = f"alter table {MARKS} add column {OFFSETS}"
    try:
        with database.translated_errors():
            connection.execute(statement)
    except DatabaseError as error:
        raise DatabaseError(f"{error}; have the owner of table {MARKS} run `{statement}`") from None


def has_offsets(database: Database, connection: Any) -> bool:
    """Return True if the table of marks has the column of offsets."""
    return any(one.name == "offsets" for one in database.describe_table(connection, MARKS).columns)
