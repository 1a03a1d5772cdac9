"""The queries for the next rows of a table, without a database.

Rows are read in the order of time, number or both, up to a bound: beyond it, more rows may still appear between
existing ones.
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


class PollQuery(NamedTuple):
    """SQL with the values of its placeholders."""

    text: str
    values: tuple[Any, ...]


@dataclass(frozen=True)
class PolledTable:
    """A table, and the columns that order its rows."""

    table: Table
    whole: bool
    """True if all columns are read."""
    incrementing: str | None
    timestamp: str | None
    time_type: str
    """The declared type of the column with the time."""
    delay_ms: int
    most: int
    zone: str

    def check(self, there: Table, validate_non_null: bool) -> None:
        """Raise ConfigError for columns that cannot order the rows."""
        for option, name in (("incrementing", self.incrementing), ("timestamp", self.timestamp)):
            if name is not None:
                with of_key(option):
                    self.check_column(option, there.column(name), there.name, validate_non_null)

    def check_column(self, option: str, column: TableColumn, table: str, validate_non_null: bool) -> None:
        name = column.name
        if option == "incrementing" and not is_number(column.kind):
            raise ConfigError(f"incrementing: column {name!r} is {column.type}; choose one of integers")
        if option == "timestamp" and not self.has_times(column):
            raise ConfigError(f"timestamp: column {name!r} is {column.type}; choose one with times")
        if column.is_nullable and validate_non_null:
            raise ConfigError(
                f"{option}: column {name!r} of table {table} may be null, and a row without it is never found; declare "
                "it NOT NULL, or set validate.non.null: false if there are none"
            )

    def has_times(self, column: TableColumn) -> bool:
        return isinstance(column.kind, (*TIMES, StringType)) and not column.as_text

    def moment(self, database: Database) -> str:
        """Return the column's time in the form that the database compares."""
        return DIALECTS[database.kind].moment(database.quote_column(str(self.timestamp)))

    def as_kept(self, database: Database) -> str:
        """Return the column's time as text for positions."""
        return DIALECTS[database.kind].as_text(database.quote_column(str(self.timestamp)))

    def next_rows(self, database: Database, position: Position | None, bound: Any) -> PollQuery:
        """Return the query for the rows after the position up to the bound; it returns their columns, followed by those of the position."""
        conditions, values = self.conditions(database, position, bound)
        orders = self.orders(database)
        kept = [self.as_kept(database)] if self.timestamp else []
        kept += [database.quote_column(self.incrementing)] if self.incrementing else []
        columns = ", ".join([database.select_list(self.table), *kept])
        text = f"select {columns} from {database.quote_table(self.table.name)} where {conditions} order by {', '.join(orders)}"
        # By time alone, rows with the same time belong together. So the limit is a time (`last_time`), not a number of
        # rows.
        return PollQuery(text if self.incrementing is None else f"{text} limit {self.most}", values)

    def next_keys(self, database: Database, position: Position | None, bound: Any) -> PollQuery:
        """Return the query for the same rows without their columns."""
        conditions, values = self.conditions(database, position, bound)
        text = f"select 1 from {database.quote_table(self.table.name)} where {conditions} order by {', '.join(self.orders(database))}"
        return PollQuery(text if self.incrementing is None else f"{text} limit {self.most}", values)

    def last_time(self, database: Database, position: Position | None, bound: Any) -> PollQuery:
        """Return the query for the time of the last row of a full batch; it returns no row if a batch is not full."""
        conditions, values = self.conditions(database, position, bound)
        return PollQuery(
            f"select {self.as_kept(database)} from {database.quote_table(self.table.name)} where {conditions} "
            f"order by {self.orders(database)[0]} limit 1 offset {self.most - 1}",
            values,
        )

    def without_order(self, database: Database, key: Sequence[str]) -> PollQuery | None:
        """Return the query for a row with a time that cannot be ordered, as text after the columns of its key; None if there cannot be one."""
        time = database.quote_column(str(self.timestamp))
        condition = DIALECTS[database.kind].without_order(time, self.time_type)
        if condition is None:
            return None
        columns = ", ".join([*map(database.quote_column, key), f"cast({time} as char(60))"])
        return PollQuery(f"select {columns} from {database.quote_table(self.table.name)} where {condition} limit 1", ())

    def orders(self, database: Database) -> list[str]:
        orders = [self.moment(database)] if self.timestamp else []
        return orders + ([database.quote_column(self.incrementing)] if self.incrementing else [])

    def conditions(self, database: Database, position: Position | None, bound: Any) -> tuple[str, tuple[Any, ...]]:
        """Return the condition for rows after the position and within the bound."""
        value = database.placeholder
        if self.timestamp is None:
            number = database.quote_column(str(self.incrementing))
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
        number = database.quote_column(self.incrementing)
        return (
            f"{text} and ({time}, {number}) > ({mark}, {value})",
            (*values, position["timestamp"], position["incrementing"]),
        )

    def kept(self) -> list[pa.Field[Any]]:
        """Return the columns of the position, which follow the table's own."""
        time = [pa.field("ottla time", pa.string())] if self.timestamp else []
        return time + ([pa.field("ottla number", pa.int64())] if self.incrementing else [])

    def position(self, row: Sequence[Any]) -> Position:
        """Return the position after this row."""
        names = [
            name for name, column in (("timestamp", self.timestamp), ("incrementing", self.incrementing)) if column
        ]
        return {name: plain(one) for name, one in zip(names, row[-len(names) :], strict=True)}


def is_number(kind: DataType) -> bool:
    """Return True for integers; MySQL's largest integers are decimals in Spark."""
    return isinstance(kind, NUMBERS) or (isinstance(kind, DecimalType) and kind.scale == 0)


def plain(value: Any) -> Any:
    """Return a value of a position as JSON has it."""
    return int(value) if isinstance(value, Decimal) else value


class UpTo(str):
    """An inclusive bound; other bounds are exclusive."""
