"""The model of `type: database` sources."""

from __future__ import annotations

from typing import Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import Field, field_validator, model_validator
from pyspark.sql.types import StructType

from ottla.pipelines.address import without_secrets
from ottla.pipelines.databases.url import DatabaseUrl, database_of
from ottla.pipelines.feeds.feed import Feed
from ottla.pipelines.model import NameList
from ottla.pipelines.pipeline_context import PipelineContext
from ottla.pipelines.place import of_key
from ottla.pipelines.sources.database.polled import PolledTable
from ottla.pipelines.sources.database.table_feed import TableFeed
from ottla.pipelines.sources.fed import FedSource, check_column_names

PORTION = 50_000
"""Rows of a fetch."""


class DatabaseSource(FedSource):
    """The rows of a table in the order of a growing column: first existing rows, then new ones, and changed ones if there is a column with the time."""

    type: Literal["database"]
    url: DatabaseUrl
    """`sqlite:///orders.db`, `postgresql://user:${env:PASSWORD}@host/name` or `mysql://…`."""
    table: str
    """The table, with its schema if that is not the default one."""
    incrementing: str | None = None
    """A column of integers that only grow: finds new rows."""
    timestamp: str | None = None
    """A column with the time of the last change: finds new and changed rows. Either this or `incrementing` is required."""
    columns: NameList | None = None
    """The columns to read; by default all columns at the start of the pipeline."""
    timestamp_delay_interval_ms: int = Field(default=1000, ge=0, alias="timestamp.delay.interval.ms")
    """The minimum age of a row's time before the row is read. Rows committed later with the same or an earlier time are
    not lost within this time.
    """
    batch_max_rows: int = Field(default=500_000, ge=1, alias="batch.max.rows")
    """The most rows of a batch. They are fetched in portions of 50,000, and a batch has the rows that existed when it
    started.
    """
    validate_non_null: bool = Field(default=True, alias="validate.non.null")
    """Reject position columns that may be null: rows with null there are never found."""
    db_timezone: str = Field(default="UTC", alias="db.timezone")
    """The time zone of times without one."""

    @field_validator("db_timezone")
    @classmethod
    def zone_is_known(cls, text: str) -> str:
        try:
            ZoneInfo(text)
        except (ZoneInfoNotFoundError, ValueError):
            raise ValueError(f"{text!r} is not a time zone; write for example `Europe/Berlin`") from None
        return text

    @model_validator(mode="after")
    def something_grows(self) -> DatabaseSource:
        if self.incrementing is None and self.timestamp is None:
            raise ValueError("give incrementing or timestamp, the column that identifies new rows, or both")
        return self

    def describe(self) -> str:
        return f"table {self.table} of {without_secrets(self.url)}"

    def identity(self) -> str:
        ways = [
            f"{name} {column}"
            for name, column in (("incrementing", self.incrementing), ("timestamp", self.timestamp))
            if column
        ]
        return f"{self.describe()} by {' and '.join(ways)}"

    def try_to_open(self, context: PipelineContext) -> None:
        with of_key("url"):
            database_of(context.resolve_address(self.url), context.folder).open().close()

    def feed(self, context: PipelineContext) -> tuple[Feed, StructType]:
        with of_key("url"):
            database = database_of(context.resolve_address(self.url), context.folder)
            connection = database.open()
        try:
            with of_key("table"):
                table = database.describe_table(connection, context.resolve(self.table))
        finally:
            connection.close()
        with of_key("columns"):
            read = table.select_columns(self.columns)
        with of_key("timestamp"):
            time_type = table.column(self.timestamp).type if self.timestamp else ""
        polled = PolledTable(
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
        return TableFeed(database, polled, self.batch_max_rows, context.dead_letters), check_column_names(
            f"table {table.name}", polled.table.schema()
        )
