"""What the file says of a table that is read."""

from __future__ import annotations

from typing import Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import Field, field_validator, model_validator
from pyspark.sql.types import StructType

from ottla.pipelines.address import shown
from ottla.pipelines.databases.url import DatabaseUrl, database_of
from ottla.pipelines.feeds.feed import Feed
from ottla.pipelines.model import NameList
from ottla.pipelines.place import of_key
from ottla.pipelines.sources.database.polled import Polled
from ottla.pipelines.sources.database.table_feed import TableFeed
from ottla.pipelines.sources.fed import FedSource, not_beside
from ottla.pipelines.surroundings import Surroundings

PORTION = 50_000
"""Rows that are fetched at once."""


class DatabaseSource(FedSource):
    """The rows of a table, in the order of a growing column; new ones, and changed ones where a time says so, as they come."""

    type: Literal["database"]
    url: DatabaseUrl
    """`sqlite:///orders.db`, `postgresql://user:${env:PASSWORD}@host/name` or `mysql://…`."""
    table: str
    """The table, with its schema where that is not the usual one."""
    incrementing: str | None = None
    """A column of whole numbers that only grow: finds new rows."""
    timestamp: str | None = None
    """A column with the time of the last change: finds new and changed rows. Either this or `incrementing` is required."""
    columns: NameList | None = None
    """The columns to read; without it all that there are when the pipeline is started."""
    timestamp_delay_interval_ms: int = Field(default=1000, ge=0, alias="timestamp.delay.interval.ms")
    """How old a row's time must be before it is read: rows that are committed later with the same time or an earlier one are
    not lost as long as they come within it."""
    batch_max_rows: int = Field(default=500_000, ge=1, alias="batch.max.rows")
    """The most rows of a batch; they are fetched in portions of 50,000, and a batch has those that were there when it began."""
    validate_non_null: bool = Field(default=True, alias="validate.non.null")
    """Whether to refuse columns of position that may be null: rows that have none there are never found."""
    db_timezone: str = Field(default="UTC", alias="db.timezone")
    """The time zone of times that have none with them."""

    @field_validator("db_timezone")
    @classmethod
    def zone_is_known(cls, text: str) -> str:
        try:
            ZoneInfo(text)
        except (ZoneInfoNotFoundError, ValueError):
            raise ValueError(f"{text!r} is no time zone; write such as `Europe/Berlin`") from None
        return text

    @model_validator(mode="after")
    def something_grows(self) -> DatabaseSource:
        if self.incrementing is None and self.timestamp is None:
            raise ValueError("give incrementing or timestamp, the column by which new rows are found, or both")
        return self

    def describe(self) -> str:
        return f"table {self.table} of {shown(self.url)}"

    def identity(self) -> str:
        ways = [
            f"{name} {column}"
            for name, column in (("incrementing", self.incrementing), ("timestamp", self.timestamp))
            if column
        ]
        return f"{self.describe()} by {' and '.join(ways)}"

    def try_to_open(self, around: Surroundings) -> None:
        with of_key("url"):
            database_of(around.resolve_address(self.url), around.folder).open().close()

    def feed(self, around: Surroundings) -> tuple[Feed, StructType]:
        with of_key("url"):
            database = database_of(around.resolve_address(self.url), around.folder)
            connection = database.open()
        try:
            with of_key("table"):
                table = database.table(connection, around.resolve(self.table))
        finally:
            connection.close()
        with of_key("columns"):
            read = table.of(self.columns)
        with of_key("timestamp"):
            time_type = table.column(self.timestamp).type if self.timestamp else ""
        polled = Polled(
            table=read,
            whole=self.columns is None,
            incrementing=self.incrementing,
            timestamp=self.timestamp,
            time_type=time_type,
            delay_ms=self.timestamp_delay_interval_ms,
            most=min(self.batch_max_rows, PORTION),
            zone=self.db_timezone,
        )
        polled.check(table, self.validate_non_null)
        return TableFeed(database, polled, self.batch_max_rows, around.letters), not_beside(
            f"table {table.name}", polled.table.schema()
        )
