"""A table and its columns, and what has become of them."""

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
    """One column, in the database's words and in Spark's."""

    name: str
    type: str
    kind: DataType
    is_nullable: bool = True
    as_text: bool = False
    """Whether Spark has no such type, and gets what the database writes."""
    query: str = "{}"
    """What is selected, where it is more than the name."""


class Table(NamedTuple):
    """What the database says of a table."""

    name: str
    columns: tuple[TableColumn, ...]
    key: tuple[str, ...] = ()
    """The columns of its primary key."""
    has_transactions: bool = True

    def column(self, name: str) -> TableColumn:
        """ConfigError where there is none."""
        for one in self.columns:
            if one.name == name:
                return one
        names = [one.name for one in self.columns]
        told = unknown("column", name, names)
        raise ConfigError(told if "did you mean" in told else f"{told}; table {self.name} has {', '.join(names)}")

    def of(self, names: Sequence[str] | None) -> Table:
        """The same with these columns alone, if any are named."""
        return self if names is None else self._replace(columns=tuple(self.column(name) for name in names))

    def schema(self) -> StructType:
        """As the rows of a stream; what has no value there, such as a zero date or NaN, is null."""
        return StructType(
            [StructField(one.name, one.kind, one.is_nullable or isinstance(one.kind, MAPPED)) for one in self.columns]
        )


MAPPED = (DateType, DecimalType, TimestampType, TimestampNTZType)
"""Types in which a database has values that Spark does not have."""
Keys = Sequence[Sequence[str]] | None
"""The columns of each unique index on all rows, the primary key first; None of a view, of which that is not known."""


def missing_table(name: str, there: Iterable[str]) -> ConfigError:
    """There is no such table."""
    return ConfigError(unknown("table", name, there))


def grouped(primary: Sequence[str], found: Iterable[tuple[str, str | None]]) -> list[Sequence[str]]:
    """Keys, from the columns of the unique indexes, each with its index; an index on more than columns is none."""
    indexes: dict[str, list[str | None]] = {}
    for index, column in found:
        indexes.setdefault(index, []).append(column)
    keys = [tuple(one for one in columns if one is not None) for columns in indexes.values() if None not in columns]
    return list(dict.fromkeys([*([tuple(primary)] if primary else []), *keys]))


def differences(before: Table, now: Table) -> Iterator[str]:
    """What has happened to the columns of a table, in a few words each."""
    old, new = {one.name: one for one in before.columns}, {one.name: one for one in now.columns}
    yield from (f"gained the column {name!r}" for name in new if name not in old)
    yield from (f"lost the column {name!r}" for name in old if name not in new)
    for name in old.keys() & new.keys():
        if old[name].type != new[name].type:
            yield f"has the column {name!r} as {new[name].type}, which was {old[name].type}"
