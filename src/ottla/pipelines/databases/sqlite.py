"""SQLite, with Python's driver."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
)

from ottla.errors import ConfigError
from ottla.pipelines.databases.database import CHUNK, DatabaseError, Kind, RefusedRowError, Rows
from ottla.pipelines.databases.identifiers import quote_identifier
from ottla.pipelines.databases.on_conflict import raise_clause, upsert_clause
from ottla.pipelines.databases.table import Keys, Table, TableColumn, group_keys, missing_table

PATIENCE_SECONDS = 30.0
"""The time to wait for another writer."""

INDEXES = """
select l.name, i.name from pragma_index_list(?) l, pragma_index_info(l.name) i
where l."unique" and not l.partial order by l.seq desc, i.seqno
"""


class Sqlite:
    """A database in a file."""

    placeholder = "?"
    kind: Kind = "sqlite"
    creation = ""

    def __init__(self, path: Path, url: str) -> None:
        self.path, self.name = path, url

    def open(self) -> sqlite3.Connection:
        if not self.path.exists():
            raise DatabaseError(f"database {self.name}: file {self.path} does not exist; create it, or correct url")
        with self.translated_errors():
            connection = sqlite3.connect(self.path, timeout=PATIENCE_SECONDS, isolation_level=None)
            connection.execute("pragma schema_version")
            return connection

    @contextmanager
    def connect(self) -> Iterator[sqlite3.Connection]:
        connection = self.open()
        try:
            with self.translated_errors():
                connection.execute("begin immediate")
                yield connection
                connection.execute("commit")
        finally:
            connection.close()  # rolls back an uncommitted transaction

    @contextmanager
    def translated_errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            of_row = isinstance(error, sqlite3.DataError | sqlite3.IntegrityError)
            raise (RefusedRowError if of_row else DatabaseError)(f"database {self.name}: {error}") from None

    def describe_table(self, connection: sqlite3.Connection, name: str) -> Table:
        with self.translated_errors():
            found = connection.execute('select name, type, "notnull", pk from pragma_table_info(?)', (name,)).fetchall()
            if not found:
                kinds = "select name from sqlite_master where type in ('table', 'view')"
                raise missing_table(name, [one for (one,) in connection.execute(kinds)])
        key = tuple(one[0] for one in sorted(found, key=lambda one: one[3]) if one[3])
        columns = [
            TableColumn(one, kind, kind_of(kind), not (filled or (one,) == key)) for one, kind, filled, _ in found
        ]
        return Table(name, tuple(columns), key)

    def find_keys(self, connection: sqlite3.Connection, table: Table) -> Keys:
        with self.translated_errors():
            kind = connection.execute("select type from sqlite_master where name = ?", (table.name,)).fetchone()
            if kind == ("view",):
                return None
            found = connection.execute(INDEXES, (table.name,)).fetchall()
        return group_keys(table.key, found)

    def quote_table(self, name: str) -> str:
        return self.quote_column(name)

    def quote_column(self, name: str) -> str:
        return quote_identifier(name)

    def select_list(self, table: Table) -> str:
        """Return the select list.

        SQLite keeps a number in a column of times as a number; it is converted to text like the others.
        """
        names = [(self.quote_column(one.name), one) for one in table.columns]
        number = "case when typeof({0}) in ('integer', 'real') then cast({0} as text) else {0} end"
        return ", ".join(number.format(name) if is_time(one) else name for name, one in names)

    def iter_rows(self, connection: sqlite3.Connection, query: str, values: Sequence[Any] | None) -> Rows:
        count = 0
        with self.translated_errors(), read_snapshot(connection):
            try:
                cursor = connection.execute(query, values or ())
                while chunk := cursor.fetchmany(CHUNK):
                    yield chunk
                    count += len(chunk)
                return
            except sqlite3.OperationalError as error:
                if "Could not decode to UTF-8" not in str(error):
                    raise
            # Again, with bytes in place of text that is not UTF-8. Checking all text in Python would be slower.
            connection.text_factory = text_or_bytes
            try:
                cursor = connection.execute(query, values or ())
                while chunk := cursor.fetchmany(CHUNK):
                    if len(chunk) > count:
                        yield chunk[count:]
                    count -= min(count, len(chunk))
            finally:
                connection.text_factory = str

    def type_of(self, kind: DataType, is_key: bool = False) -> str:
        for types, name in TYPES:
            if isinstance(kind, types):
                return name
        raise ConfigError(
            f"there is no type of SQLite for {kind.simpleString()}; cast it in a step, to string for instance"
        )

    def upsert_clause(self, key: Sequence[str], others: Sequence[str]) -> str:
        return upsert_clause(key, others)

    def raise_clause(self, table: str, key: str, number: str, other: str) -> str:
        return raise_clause(table, key, number, other)


@contextmanager
def read_snapshot(connection: sqlite3.Connection) -> Iterator[None]:
    """All statements in the block read the same state."""
    connection.execute("begin")
    try:
        yield
    finally:
        with suppress(sqlite3.Error):  # the connection may be closed
            connection.execute("rollback")


def text_or_bytes(data: bytes) -> str | bytes:
    """Return text, or its bytes if these are not UTF-8."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data


TYPES: list[tuple[Any, str]] = [
    ((ByteType, ShortType, IntegerType, LongType), "INTEGER"),
    (BooleanType, "BOOLEAN"),
    ((FloatType, DoubleType), "REAL"),
    (BinaryType, "BLOB"),
    (StringType, "TEXT"),
]
"""The types of new columns; times and decimals, which SQLite does not have, are stored as text."""


def is_time(column: TableColumn) -> bool:
    """Return True if the column is declared as a time. SQLite has no such type: the column has text or numbers."""
    declared = column.type.upper()
    return isinstance(column.kind, StringType) and not any(part in declared for part in ("CHAR", "CLOB", "TEXT"))


def kind_of(declared: str) -> DataType:
    """Return Spark's type for a declared type, by SQLite's rules of affinity."""
    text = declared.upper()
    if "INT" in text:
        return LongType()
    if "BOOL" in text:
        return BooleanType()
    if any(part in text for part in ("CHAR", "CLOB", "TEXT", "DATE", "TIME")) or not text:
        return StringType()
    if "BLOB" in text:
        return BinaryType()
    return DoubleType()
