"""What any database can do for a pipeline."""

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
    """A database cannot be reached, or refuses what it is asked."""


class RefusedRowError(DatabaseError):
    """A database refuses a row for a value in it: other rows may be written."""


class Database(Protocol):
    """One database, which is not open yet; can be copied to where Spark works."""

    name: str
    """Its address without what is secret."""
    placeholder: str
    """What stands for a value in its SQL."""
    kind: Kind
    creation: str
    """What follows the columns of a table that is made."""

    def connect(self) -> AbstractContextManager[Any]:
        """A connection in a transaction that is committed at the end; DatabaseError for whatever goes wrong in it."""

    def open(self) -> Any:
        """A connection that commits each statement by itself."""

    def telling(self) -> AbstractContextManager[None]:
        """Turns the driver's errors into DatabaseErrors."""

    def table(self, connection: Any, name: str) -> Table:
        """ConfigError where there is no such table."""

    def keys(self, connection: Any, table: Table) -> Keys:
        """By which columns its rows can be told apart."""

    def quoted(self, name: str) -> str:
        """A name of a table, with its schema, as SQL has it."""

    def identifier(self, name: str) -> str:
        """A name of a column."""

    def selected(self, table: Table) -> str:
        """The columns, as a query gives them."""

    def rows(self, connection: Any, query: str, values: Sequence[Any] | None) -> Rows:
        """What a query gives, not all at once; with None the text has no placeholders, and a `%` in it is one."""

    def type_of(self, kind: Any, is_key: bool = False) -> str:
        """The type of a new column for values of this type of Spark's."""

    def upserted(self, key: Sequence[str], others: Sequence[str]) -> str:
        """What an insert says of rows whose key is there; names are quoted."""

    def raised(self, table: str, key: str, number: str, other: str) -> str:
        """The same for a number that only grows, with another column; no row is changed where it would not grow."""


def with_percents(query: str, quote: str) -> str:
    """The text of a statement with placeholders such as `%s`, in which a `%` of a quoted name is none.

    Names stand in `quote`, and no placeholder does; a quote in a name is doubled, so that names are every second part.
    """
    parts = query.split(quote)
    parts[1::2] = [one.replace("%", "%%") for one in parts[1::2]]
    return quote.join(parts)
