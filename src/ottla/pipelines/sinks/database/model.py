"""The model of `type: database` sinks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

from pydantic import Field, model_validator
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DateType,
    DecimalType,
    MapType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from ottla.config import unknown
from ottla.errors import ConfigError
from ottla.pipelines.address import without_secrets
from ottla.pipelines.databases.database import Database
from ottla.pipelines.databases.table import Keys, Table
from ottla.pipelines.databases.url import DatabaseUrl, database_of
from ottla.pipelines.dead_letters import DeadLetterTopic
from ottla.pipelines.model import NameList
from ottla.pipelines.pipeline_context import PipelineContext, QuerySettings
from ottla.pipelines.place import of_key
from ottla.pipelines.rows import column, in_json
from ottla.pipelines.sinks.batches import WrittenCounts, start_batches
from ottla.pipelines.sinks.database.statements import Statements, add_offsets
from ottla.pipelines.sinks.database.table_writer import DatabaseTableWriter
from ottla.pipelines.sinks.sink import Sink
from ottla.pipelines.sinks.upserts import DELETED, upserts
from ottla.spark.tables.guard import BatchMark

PARTS = (StructType, ArrayType, MapType)


class DatabaseSink(Sink):
    """Rows into a table of SQLite, PostgreSQL or MySQL; the options have the names of Kafka Connect's JDBC sink."""

    guarantee: ClassVar[str] = "exactly once"
    type: Literal["database"]
    url: DatabaseUrl
    """`sqlite:///orders.db`, `postgresql://user:${env:PASSWORD}@host/name` or `mysql://…`."""
    table: str
    """The table, with its schema if that is not the default one."""
    insert_mode: Literal["insert", "upsert"] = Field(default="insert", alias="insert.mode")
    """`insert`: each row is a new one; `upsert`: a row replaces the row with the same `pk.fields`."""
    pk_fields: NameList = Field(default=[], alias="pk.fields")
    """The columns that identify a row for upserts: the table's primary key, or a unique index."""
    delete_enabled: bool = Field(default=False, alias="delete.enabled")
    """A tombstone deletes the row with its key."""
    auto_create: bool = Field(default=False, alias="auto.create")
    """Create the table if it does not exist."""

    @model_validator(mode="after")
    def keys_go_with_upserts(self) -> DatabaseSink:
        if (self.insert_mode == "upsert") != bool(self.pk_fields):
            raise ValueError("insert.mode upsert needs pk.fields, and pk.fields needs it; give both or none")
        if self.delete_enabled and self.insert_mode != "upsert":
            raise ValueError("delete.enabled needs insert.mode: upsert; set it, or leave delete.enabled out")
        return self

    def describe(self) -> str:
        return f"table {self.table} of {without_secrets(self.url)}"

    def try_to_open(self, context: PipelineContext) -> None:
        with of_key("url"):
            database_of(context.resolve_address(self.url), context.folder).open().close()

    def check(self, frame: DataFrame, context: PipelineContext) -> None:
        database, rows, statements = self.parts(frame, context)
        types_of(database, rows, self.pk_fields)
        with of_key("url"):
            connection = database.open()
        try:
            with of_key("table"):
                self.check_table(database, connection, statements)
        finally:
            connection.close()

    def check_table(self, database: Database, connection: Any, statements: Statements) -> None:
        try:
            table = database.describe_table(connection, statements.table)
        except ConfigError as error:
            if not self.auto_create:
                raise ConfigError(f"{error}; create it, or set auto.create: true") from None
            return
        self.check_columns(table, statements)
        if statements.key:
            with of_key("pk.fields"):
                check_key(table, database.find_keys(connection, table), statements)

    def check_columns(self, table: Table, statements: Statements) -> None:
        if not table.has_transactions:
            raise ConfigError(
                f"table {table.name} does not support transactions, so half of a batch could remain; alter table {table.name} engine=InnoDB"
            )
        there = [one.name for one in table.columns]
        for name in statements.columns:
            if name not in there:
                text = unknown("column", name, there)
                hint = text if "did you mean" in text else f"{text}; the table has {', '.join(there)}"
                raise ConfigError(f"table {table.name}: {hint}; add it to the table, or drop it in a transform")

    def start(self, frame: DataFrame, context: PipelineContext, query_settings: QuerySettings) -> StreamingQuery:
        database, rows, statements = self.parts(frame, context)
        creation = [statements.create(types_of(database, rows, self.pk_fields))] if self.auto_create else []
        ready = ReadyTables(database, statements, [*creation, statements.create_marks()], context.dead_letters)
        return start_batches(rows, query_settings, ready.writer, whole=True)

    def parts(self, frame: DataFrame, context: PipelineContext) -> tuple[Database, DataFrame, Statements]:
        """Return the database, the rows in its types, and the statements."""
        with of_key("url"):
            database = database_of(context.resolve_address(self.url), context.folder)
        with of_key("pk.fields"):
            rows = self.rows(frame, is_sqlite=database.kind == "sqlite")
        names = tuple(name for name in rows.columns if name != DELETED)
        return database, rows, Statements(database, context.resolve(self.table), names, tuple(self.pk_fields))

    def rows(self, frame: DataFrame, is_sqlite: bool) -> DataFrame:
        """Return the columns in the types of the table, and whether a row is to be deleted."""
        rows = upserts(frame, self.pk_fields, self.delete_enabled)
        return rows.select(
            *(as_database_column(column(one.name), one.dataType, is_sqlite).alias(one.name) for one in rows.schema)
        )


class ReadyTables:
    """Creates the tables before the first batch, in the driver."""

    def __init__(
        self, database: Database, statements: Statements, creation: list[str], dead_letters: DeadLetterTopic | None
    ) -> None:
        self._database, self._statements, self._creation, self._letters = database, statements, creation, dead_letters

    def writer(self, query: str) -> TaskWriter:
        if self._creation:
            with self._database.connect() as connection:
                for one in self._creation:
                    connection.execute(one)
                add_offsets(self._database, connection)
            self._creation = []
        return TaskWriter(DatabaseTableWriter(self._database, self._statements, query, self._letters))


class TaskWriter:
    """The writer of a table as a function for tasks; each batch has one task."""

    def __init__(self, writer: DatabaseTableWriter) -> None:
        self.writer = writer

    def __call__(self, mark: BatchMark, task: str, rows: Any) -> WrittenCounts:
        return self.writer.write(mark.batch, rows, mark.offsets)


def check_key(table: Table, keys: Keys, statements: Statements) -> None:
    """Raise ConfigError if the key is not unique in the table: the database would reject upserts, or add duplicates."""
    if keys is not None and set(statements.key) not in map(set, keys):
        wanted = ", ".join(statements.key)
        there = " or ".join(", ".join(one) for one in keys) or "nothing"
        raise ConfigError(
            f"pk.fields: {wanted} is not unique in table {table.name}, which has {there}; use that, or "
            f"`create unique index on {table.name} ({wanted})`"
        )


def types_of(database: Database, rows: DataFrame, key: Sequence[str]) -> list[str]:
    return [database.type_of(one.dataType, one.name in key) for one in rows.schema.fields if one.name != DELETED]


def as_database_column(one: Column, kind: DataType, is_sqlite: bool) -> Column:
    """Return a column as text if the database has no type for it: structs, arrays and maps, and SQLite's times and decimals."""
    if isinstance(kind, PARTS):
        return in_json(one, with_nulls=False)
    if is_sqlite and isinstance(kind, TimestampType | TimestampNTZType):
        return F.date_format(one, "yyyy-MM-dd HH:mm:ss.SSSSSS")
    if is_sqlite and isinstance(kind, DateType | DecimalType):
        return one.cast("string")
    return one
