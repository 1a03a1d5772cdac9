"""The SQL of a sink."""

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
    """What is said to one table."""

    database: Database
    table: str
    columns: tuple[str, ...]
    key: tuple[str, ...] = ()
    """What an upsert finds rows by; empty where rows are added."""

    def create(self, types: Sequence[str]) -> str:
        """The table itself; a column of the key is not null."""
        quote = self.database.identifier
        parts = [
            f"{quote(name)} {kind}{' not null' if name in self.key else ''}"
            for name, kind in zip(self.columns, types, strict=True)
        ]
        parts += [f"primary key ({', '.join(map(quote, self.key))})"] if self.key else []
        return f"create table if not exists {self.database.quoted(self.table)} ({', '.join(parts)}){self.database.creation}"

    def target(self) -> str:
        """The table with the columns that are written."""
        names = ", ".join(map(self.database.identifier, self.columns))
        return f"{self.database.quoted(self.table)} ({names})"

    def write(self) -> str:
        """One row."""
        text = f"insert into {self.target()} values ({', '.join([self.database.placeholder] * len(self.columns))})"
        return f"{text} {self.conflict()}" if self.key else text

    def conflict(self) -> str:
        """What becomes of a row whose key is there."""
        quote = self.database.identifier
        others = [quote(name) for name in self.columns if name not in self.key]
        return self.database.upserted([quote(name) for name in self.key], others)

    def delete(self) -> str:
        """The row of a key."""
        where = " and ".join(f"{self.database.identifier(name)} = {self.database.placeholder}" for name in self.key)
        return f"delete from {self.database.quoted(self.table)} where {where}"

    def create_marks(self) -> str:
        """The table of marks; `offsets` is a digest of the batch's entry in Spark's offset log, null where it is not known."""
        columns = f"query varchar(200) primary key, batch bigint not null, {OFFSETS}"
        return f"create table if not exists {MARKS} ({columns}){self.database.creation}"

    def mark(self) -> str:
        """Change no row where the batch, or a later one, is marked already; wait for another attempt that writes it."""
        value = self.database.placeholder
        raised = self.database.raised(MARKS, "query", "batch", "offsets")
        return f"insert into {MARKS} (query, batch, offsets) values ({value}, {value}, {value}) {raised}"

    def marked(self) -> str:
        return f"select batch, offsets from {MARKS} where query = {self.database.placeholder}"


def add_offsets(database: Database, connection: Any) -> None:
    """Add the column of offsets to a table of marks that an earlier version made."""
    if has_offsets(database, connection):
        return
    statement = f"alter table {MARKS} add column {OFFSETS}"
    try:
        with database.telling():
            connection.execute(statement)
    except DatabaseError as error:
        raise DatabaseError(f"{error}; have the owner of table {MARKS} run `{statement}`") from None


def has_offsets(database: Database, connection: Any) -> bool:
    """True if the table of marks has the column of offsets."""
    return any(one.name == "offsets" for one in database.table(connection, MARKS).columns)
