"""The interface of a database."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Literal, Protocol

from ottla.errors import OttlaError
from ottla.pipelines.databases.table import Keys, Table

Kind = Literal["sqlite", "postgresql", "mysql"]
Rows = Iterator[Sequence[Sequence[Any]]]
"""Chunks of rows."""
CHUNK = 10_000


class DatabaseError(OttlaError):
    """A database is not available, or rejected a statement."""


class RefusedRowError(DatabaseError):
    """A database rejected a row because of a value in it; other rows can be written."""


class Database(Protocol):
    """One database. The object has no connection, and can be copied to Spark's workers."""

    name: str
    """The address without secrets."""
    placeholder: str
    """The placeholder for a value in SQL."""
    kind: Kind
    creation: str
    """The text after the columns in `create table`."""

    def connect(self) -> AbstractContextManager[Any]:
        """Open a connection in a transaction that is committed at the end; all errors in the block are DatabaseErrors."""

    def open(self) -> Any:
        """Open a connection that commits each statement."""

    def translated_errors(self) -> AbstractContextManager[None]:
        """Raise the driver's errors as DatabaseErrors."""

    def describe_table(self, connection: Any, name: str) -> Table:
        """Return the description of a table; ConfigError if it does not exist."""

    def find_keys(self, connection: Any, table: Table) -> Keys:
        """Return the unique keys of a table."""

    def quote_table(self, name: str) -> str:
        """Return a table's name, with its schema, quoted for SQL."""

    def quote_column(self, name: str) -> str:
        """Return a column's name, quoted for SQL."""

    def select_list(self, table: Table) -> str:
        """Return the select list for the columns."""

    def iter_rows(self, connection: Any, query: str, values: Sequence[Any] | None) -> Rows:
        """Yield the rows of a query in chunks.

        If `values` is None, the text has no placeholders, and `%` is a plain character.
        """

    def type_of(self, kind: Any, is_key: bool = False) -> str:
        """Return the type of a new column for values of this Spark type."""

    def upsert_clause(self, key: Sequence[str], others: Sequence[str]) -> str:
        """Return the clause of an insert for rows with an existing key; names are quoted."""

    def raise_clause(self, table: str, key: str, number: str, other: str) -> str:
        """Return the clause of an insert for a number that only grows, with another column; no row is changed if it would not grow."""


def with_percents(query: str, quote: str) -> str:
    """Return a statement with placeholders such as `%s` in which each `%` of a quoted name is escaped.

    Names are enclosed in `quote`, and placeholders are not. A quote in a name is doubled, so every second part of the
    text is a name.
    """
    parts = query.split(quote)
    parts[1::2] = [one.replace("%", "%%") for one in parts[1::2]]
    return quote.join(parts)
