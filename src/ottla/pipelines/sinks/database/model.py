"""What the file says of a table that is written."""

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
from ottla.pipelines.address import shown
from ottla.pipelines.databases.database import Database
from ottla.pipelines.databases.table import Keys, Table
from ottla.pipelines.databases.url import DatabaseUrl, database_of
from ottla.pipelines.dead_letters import DeadLetterTopic
from ottla.pipelines.model import NameList
from ottla.pipelines.place import of_key
from ottla.pipelines.rows import column, in_json
from ottla.pipelines.sinks.batches import Written, start_batches
from ottla.pipelines.sinks.database.statements import Statements, add_offsets
from ottla.pipelines.sinks.database.table_writer import TableWriter
from ottla.pipelines.sinks.sink import Sink
from ottla.pipelines.sinks.upserts import DELETED, upserts
from ottla.pipelines.surroundings import How, Surroundings
from ottla.spark.tables.guard import BatchMark

PARTS = (StructType, ArrayType, MapType)


class DatabaseSink(Sink):
    """Rows into a table of SQLite, PostgreSQL or MySQL; options are called as Kafka Connect's JDBC sink calls them."""

    guarantee: ClassVar[str] = "exactly once"
    type: Literal["database"]
    url: DatabaseUrl
    """`sqlite:///orders.db`, `postgresql://user:${env:PASSWORD}@host/name` or `mysql://…`."""
    table: str
    """The table, with its schema where that is not the usual one."""
    insert_mode: Literal["insert", "upsert"] = Field(default="insert", alias="insert.mode")
    """`insert`: a new row for each; `upsert`: a row whose `pk.fields` are there takes the place of that one."""
    pk_fields: NameList = Field(default=[], alias="pk.fields")
    """The columns that an upsert finds rows by: the table's primary key, or unique together."""
    delete_enabled: bool = Field(default=False, alias="delete.enabled")
    """Whether a tombstone deletes the row of its key."""
    auto_create: bool = Field(default=False, alias="auto.create")
    """Whether a table that is not there is made."""

    @model_validator(mode="after")
    def keys_go_with_upserts(self) -> DatabaseSink:
        if (self.insert_mode == "upsert") != bool(self.pk_fields):
            raise ValueError("insert.mode upsert and pk.fields go together; give both or none")
        if self.delete_enabled and self.insert_mode != "upsert":
            raise ValueError("delete.enabled is for insert.mode upsert; set it, or leave delete.enabled out")
        return self

    def describe(self) -> str:
        return f"table {self.table} of {shown(self.url)}"

    def try_to_open(self, around: Surroundings) -> None:
        with of_key("url"):
            database_of(around.resolve_address(self.url), around.folder).open().close()

    def check(self, frame: DataFrame, around: Surroundings) -> None:
        database, rows, statements = self.parts(frame, around)
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
            table = database.table(connection, statements.table)
        except ConfigError as error:
            if not self.auto_create:
                raise ConfigError(f"{error}; make it, or set auto.create: true") from None
            return
        self.check_columns(table, statements)
        if statements.key:
            with of_key("pk.fields"):
                check_key(table, database.keys(connection, table), statements)

    def check_columns(self, table: Table, statements: Statements) -> None:
        if not table.has_transactions:
            raise ConfigError(
                f"table {table.name} has no transactions, so that half a batch could stay; alter table {table.name} engine=InnoDB"
            )
        there = [one.name for one in table.columns]
        for name in statements.columns:
            if name not in there:
                told = unknown("column", name, there)
                hint = told if "did you mean" in told else f"{told}; the table has {', '.join(there)}"
                raise ConfigError(f"table {table.name}: {hint}; add it to the table, or leave it out in a step")

    def start(self, frame: DataFrame, around: Surroundings, how: How) -> StreamingQuery:
        database, rows, statements = self.parts(frame, around)
        creation = [statements.create(types_of(database, rows, self.pk_fields))] if self.auto_create else []
        ready = ReadyTables(database, statements, [*creation, statements.create_marks()], around.letters)
        return start_batches(rows, how, ready.writer, whole=True)

    def parts(self, frame: DataFrame, around: Surroundings) -> tuple[Database, DataFrame, Statements]:
        """The database, the rows as it takes them, and what it is told."""
        with of_key("url"):
            database = database_of(around.resolve_address(self.url), around.folder)
        with of_key("pk.fields"):
            rows = self.rows(frame, is_sqlite=database.kind == "sqlite")
        names = tuple(name for name in rows.columns if name != DELETED)
        return database, rows, Statements(database, around.resolve(self.table), names, tuple(self.pk_fields))

    def rows(self, frame: DataFrame, is_sqlite: bool) -> DataFrame:
        """The columns as the table has them, and whether a row is one that is to be deleted."""
        rows = upserts(frame, self.pk_fields, self.delete_enabled)
        return rows.select(*(written(column(one.name), one.dataType, is_sqlite).alias(one.name) for one in rows.schema))


class ReadyTables:
    """Makes what must be there before the first batch, in the driver."""

    def __init__(
        self, database: Database, statements: Statements, creation: list[str], letters: DeadLetterTopic | None
    ) -> None:
        self._database, self._statements, self._creation, self._letters = database, statements, creation, letters

    def writer(self, query: str) -> TaskWriter:
        if self._creation:
            with self._database.connect() as connection:
                for one in self._creation:
                    connection.execute(one)
                add_offsets(self._database, connection)
            self._creation = []
        return TaskWriter(TableWriter(self._database, self._statements, query, self._letters))


class TaskWriter:
    """A table's writer as tasks are given it; there is one for each batch."""

    def __init__(self, writer: TableWriter) -> None:
        self.writer = writer

    def __call__(self, mark: BatchMark, task: str, rows: Any) -> Written:
        return self.writer.write(mark.batch, rows, mark.offsets)


def check_key(table: Table, keys: Keys, statements: Statements) -> None:
    """ConfigError where rows cannot be told apart by it: they would be refused when they come, or be there twice."""
    if keys is not None and set(statements.key) not in map(set, keys):
        wanted = ", ".join(statements.key)
        there = " or ".join(", ".join(one) for one in keys) or "nothing"
        raise ConfigError(
            f"pk.fields: {wanted} is not unique in table {table.name}, in which {there} is; name that, or "
            f"`create unique index on {table.name} ({wanted})`"
        )


def types_of(database: Database, rows: DataFrame, key: Sequence[str]) -> list[str]:
    return [database.type_of(one.dataType, one.name in key) for one in rows.schema.fields if one.name != DELETED]


def written(one: Column, kind: DataType, is_sqlite: bool) -> Column:
    """What a database has no type for, as text: parts of JSON, and SQLite times and decimals."""
    if isinstance(kind, PARTS):
        return in_json(one, with_nulls=False)
    if is_sqlite and isinstance(kind, TimestampType | TimestampNTZType):
        return F.date_format(one, "yyyy-MM-dd HH:mm:ss.SSSSSS")
    if is_sqlite and isinstance(kind, DateType | DecimalType):
        return one.cast("string")
    return one
