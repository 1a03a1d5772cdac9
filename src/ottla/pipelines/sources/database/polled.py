"""Which rows of a table are next: queries, without a database.

Rows are taken in the order of time, number or both, up to a bound after which a row may still come in between.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql.types import (
    DataType,
    DateType,
    DecimalType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    TimestampNTZType,
    TimestampType,
)

from ottla.errors import ConfigError
from ottla.pipelines.databases.database import Database
from ottla.pipelines.databases.table import Table, TableColumn
from ottla.pipelines.feeds.feed import Position
from ottla.pipelines.place import of_key
from ottla.pipelines.sources.database.dialects import DIALECTS

NUMBERS = (LongType, IntegerType, ShortType)
TIMES = (TimestampType, TimestampNTZType, DateType)


class Query(NamedTuple):
    """SQL and what stands for its placeholders."""

    text: str
    values: tuple[Any, ...]


@dataclass(frozen=True)
class Polled:
    """A table, and by what its rows are found."""

    table: Table
    whole: bool
    """Whether all its columns are read."""
    incrementing: str | None
    timestamp: str | None
    time_type: str
    """What the column with the time is declared as."""
    delay_ms: int
    most: int
    zone: str

    def check(self, there: Table, validate_non_null: bool) -> None:
        """ConfigError for columns by which no row could be found."""
        for option, name in (("incrementing", self.incrementing), ("timestamp", self.timestamp)):
            if name is not None:
                with of_key(option):
                    self.check_column(option, there.column(name), there.name, validate_non_null)

    def check_column(self, option: str, column: TableColumn, table: str, validate_non_null: bool) -> None:
        name = column.name
        if option == "incrementing" and not is_number(column.kind):
            raise ConfigError(f"incrementing: column {name!r} is {column.type}; name one of whole numbers")
        if option == "timestamp" and not self.has_times(column):
            raise ConfigError(f"timestamp: column {name!r} is {column.type}; name one that has times")
        if column.is_nullable and validate_non_null:
            raise ConfigError(
                f"{option}: column {name!r} of table {table} may be null, and a row without it is never found; declare "
                "it NOT NULL, or set validate.non.null: false if there are none"
            )

    def has_times(self, column: TableColumn) -> bool:
        return isinstance(column.kind, (*TIMES, StringType)) and not column.as_text

    def moment(self, database: Database) -> str:
        """The column's time as the database compares it."""
        return DIALECTS[database.kind].moment(database.identifier(str(self.timestamp)))

    def as_kept(self, database: Database) -> str:
        """The times as positions have them, which is text."""
        return DIALECTS[database.kind].as_text(database.identifier(str(self.timestamp)))

    def next_rows(self, database: Database, position: Position | None, bound: Any) -> Query:
        """The rows after the position up to the bound; their columns, then what the position is made of."""
        conditions, values = self.conditions(database, position, bound)
        orders = self.orders(database)
        kept = [self.as_kept(database)] if self.timestamp else []
        kept += [database.identifier(self.incrementing)] if self.incrementing else []
        columns = ", ".join([database.selected(self.table), *kept])
        text = (
            f"select {columns} from {database.quoted(self.table.name)} where {conditions} order by {', '.join(orders)}"
        )
        # By time alone rows of the same time belong together, so the limit is a time (`last_time`) and no number of rows.
        return Query(text if self.incrementing is None else f"{text} limit {self.most}", values)

    def next_keys(self, database: Database, position: Position | None, bound: Any) -> Query:
        """The same rows, without what is in them."""
        conditions, values = self.conditions(database, position, bound)
        text = f"select 1 from {database.quoted(self.table.name)} where {conditions} order by {', '.join(self.orders(database))}"
        return Query(text if self.incrementing is None else f"{text} limit {self.most}", values)

    def last_time(self, database: Database, position: Position | None, bound: Any) -> Query:
        """The time of the last row that a batch has room for, if there are as many."""
        conditions, values = self.conditions(database, position, bound)
        return Query(
            f"select {self.as_kept(database)} from {database.quoted(self.table.name)} where {conditions} "
            f"order by {self.orders(database)[0]} limit 1 offset {self.most - 1}",
            values,
        )

    def without_order(self, database: Database, key: Sequence[str]) -> Query | None:
        """A row whose time has no place among the others, as text after the columns of its key; None where there can be none."""
        time = database.identifier(str(self.timestamp))
        condition = DIALECTS[database.kind].without_order(time, self.time_type)
        if condition is None:
            return None
        columns = ", ".join([*map(database.identifier, key), f"cast({time} as char(60))"])
        return Query(f"select {columns} from {database.quoted(self.table.name)} where {condition} limit 1", ())

    def orders(self, database: Database) -> list[str]:
        orders = [self.moment(database)] if self.timestamp else []
        return orders + ([database.identifier(self.incrementing)] if self.incrementing else [])

    def conditions(self, database: Database, position: Position | None, bound: Any) -> tuple[str, tuple[Any, ...]]:
        """Which rows lie after the position and within the bound."""
        value = database.placeholder
        if self.timestamp is None:
            number = database.identifier(str(self.incrementing))
            after = () if position is None else (position["incrementing"],)
            return f"{number} <= {value}" + f" and {number} > {value}" * len(after), (bound, *after)
        time, dialect = self.moment(database), DIALECTS[database.kind]
        mark = dialect.mark(self.time_type)
        reached = "<=" if isinstance(bound, UpTo) else "<"
        text, values = f"{time} {reached} {mark}", (str(bound),)
        if position is None:
            return text, values
        if self.incrementing is None:
            return f"{text} and {time} > {mark}", (*values, position["timestamp"])
        number = database.identifier(self.incrementing)
        return (
            f"{text} and ({time}, {number}) > ({mark}, {value})",
            (*values, position["timestamp"], position["incrementing"]),
        )

    def kept(self) -> list[pa.Field[Any]]:
        """What the position is made of, as the columns after the table's own."""
        time = [pa.field("ottla time", pa.string())] if self.timestamp else []
        return time + ([pa.field("ottla number", pa.int64())] if self.incrementing else [])

    def position(self, row: Sequence[Any]) -> Position:
        """After this row."""
        names = [
            name for name, column in (("timestamp", self.timestamp), ("incrementing", self.incrementing)) if column
        ]
        return {name: plain(one) for name, one in zip(names, row[-len(names) :], strict=True)}


def is_number(kind: DataType) -> bool:
    """Whether these are whole numbers; MySQL's largest are decimals in Spark."""
    return isinstance(kind, NUMBERS) or (isinstance(kind, DecimalType) and kind.scale == 0)


def plain(value: Any) -> Any:
    """As JSON has it."""
    return int(value) if isinstance(value, Decimal) else value


class UpTo(str):
    """A time that belongs to the batch, while another bound does not."""
