"""A table with its columns, and the differences between two states of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from pyspark.sql.types import (
    DataType,
    DateType,
    DecimalType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from ottla.config import unknown
from ottla.errors import ConfigError


class TableColumn(NamedTuple):
    """One column with its type in the database and in Spark."""

    name: str
    type: str
    kind: DataType
    is_nullable: bool = True
    as_text: bool = False
    """True if Spark has no such type, and the value is read as the database's text."""
    query: str = "{}"
    """The expression to select; by default the name."""


class Table(NamedTuple):
    """The description of a table from the database's catalogue."""

    name: str
    columns: tuple[TableColumn, ...]
    key: tuple[str, ...] = ()
    """The columns of its primary key."""
    has_transactions: bool = True

    def column(self, name: str) -> TableColumn:
        """Return a column; ConfigError if it does not exist."""
        for one in self.columns:
            if one.name == name:
                return one
        names = [one.name for one in self.columns]
        text = unknown("column", name, names)
        raise ConfigError(text if "did you mean" in text else f"{text}; table {self.name} has {', '.join(names)}")

    def select_columns(self, names: Sequence[str] | None) -> Table:
        """Return the table with these columns only; unchanged if `names` is None."""
        return self if names is None else self._replace(columns=tuple(self.column(name) for name in names))

    def schema(self) -> StructType:
        """Return the schema of the rows.

        Types with values that Spark does not have, such as a zero date or NaN, are nullable.
        """
        return StructType(
            [StructField(one.name, one.kind, one.is_nullable or isinstance(one.kind, MAPPED)) for one in self.columns]
        )


MAPPED = (DateType, DecimalType, TimestampType, TimestampNTZType)
"""Types for which a database has values that Spark does not have."""
Keys = Sequence[Sequence[str]] | None
"""The columns of each unique index on all rows, the primary key first; None for a view, for which they are unknown."""


def missing_table(name: str, there: Iterable[str]) -> ConfigError:
    """Return the error for a table that does not exist."""
    return ConfigError(unknown("table", name, there))


def group_keys(primary: Sequence[str], found: Iterable[tuple[str, str | None]]) -> list[Sequence[str]]:
    """Return the keys from pairs of index and column; an index on an expression is not a key."""
    indexes: dict[str, list[str | None]] = {}
    for index, column in found:
        indexes.setdefault(index, []).append(column)
    keys = [tuple(one for one in columns if one is not None) for columns in indexes.values() if None not in columns]
    return list(dict.fromkeys([*([tuple(primary)] if primary else []), *keys]))


def describe_differences(before: Table, now: Table) -> Iterator[str]:
    """Yield a short description of each change of the columns."""
    old, new = {one.name: one for one in before.columns}, {one.name: one for one in now.columns}
    yield from (f"gained the column {name!r}" for name in new if name not in old)
    yield from (f"lost the column {name!r}" for name in old if name not in new)
    for name in old.keys() & new.keys():
        if old[name].type != new[name].type:
            yield f"has the column {name!r} as {new[name].type}, which was {old[name].type}"
