"""The SQL of a sink. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ottla.pipelines.databases.database import Database

MARKS = "ottla_batches"
"""The table of marks: the last batch of each query, written in the transaction of its rows."""


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
        return f"create table if not exists {MARKS} (query varchar(200) primary key, batch bigint not null){self.database.creation}"

    def mark(self) -> str:
        """Changes no row where the batch, or a later one, is there already; waits for another attempt that is at it."""
        value = self.database.placeholder
        return f"insert into {MARKS} (query, batch) values ({value}, {value}) {self.database.raised(MARKS, 'query', 'batch')}"

    def marked(self) -> str:
        return f"select batch from {MARKS} where query = {self.database.placeholder}"
