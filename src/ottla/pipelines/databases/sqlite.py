"""SQLite, by the driver that Python has."""

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
from ottla.pipelines.databases.on_conflict import raised, upserted
from ottla.pipelines.databases.table import Keys, Table, TableColumn, grouped, missing_table

PATIENCE_SECONDS = 30.0
"""How long it waits for another writer."""

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
            raise DatabaseError(f"database {self.name}: there is no file {self.path}; make it, or correct url")
        with self.telling():
            connection = sqlite3.connect(self.path, timeout=PATIENCE_SECONDS, isolation_level=None)
            connection.execute("pragma schema_version")
            return connection

    @contextmanager
    def connect(self) -> Iterator[sqlite3.Connection]:
        connection = self.open()
        try:
            with self.telling():
                connection.execute("begin immediate")
                yield connection
                connection.execute("commit")
        finally:
            connection.close()  # which rolls back what is not committed

    @contextmanager
    def telling(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            of_row = isinstance(error, sqlite3.DataError | sqlite3.IntegrityError)
            raise (RefusedRowError if of_row else DatabaseError)(f"database {self.name}: {error}") from None

    def table(self, connection: sqlite3.Connection, name: str) -> Table:
        with self.telling():
            found = connection.execute('select name, type, "notnull", pk from pragma_table_info(?)', (name,)).fetchall()
            if not found:
                kinds = "select name from sqlite_master where type in ('table', 'view')"
                raise missing_table(name, [one for (one,) in connection.execute(kinds)])
        key = tuple(one[0] for one in sorted(found, key=lambda one: one[3]) if one[3])
        columns = [
            TableColumn(one, kind, kind_of(kind), not (filled or (one,) == key)) for one, kind, filled, _ in found
        ]
        return Table(name, tuple(columns), key)

    def keys(self, connection: sqlite3.Connection, table: Table) -> Keys:
        with self.telling():
            kind = connection.execute("select type from sqlite_master where name = ?", (table.name,)).fetchone()
            if kind == ("view",):
                return None
            found = connection.execute(INDEXES, (table.name,)).fetchall()
        return grouped(table.key, found)

    def quoted(self, name: str) -> str:
        return self.identifier(name)

    def identifier(self, name: str) -> str:
        return '"' + name.replace('"', '""') + '"'

    def selected(self, table: Table) -> str:
        """The columns; a number in a column of times, which SQLite keeps as it is, is text as the others are."""
        names = [(self.identifier(one.name), one) for one in table.columns]
        number = "case when typeof({0}) in ('integer', 'real') then cast({0} as text) else {0} end"
        return ", ".join(number.format(name) if is_time(one) else name for name, one in names)

    def rows(self, connection: sqlite3.Connection, query: str, values: Sequence[Any] | None) -> Rows:
        count = 0
        with self.telling(), snapshot(connection):
            try:
                cursor = connection.execute(query, values or ())
                while chunk := cursor.fetchmany(CHUNK):
                    yield chunk
                    count += len(chunk)
                return
            except sqlite3.OperationalError as error:
                if "Could not decode to UTF-8" not in str(error):
                    raise
            # Again, with bytes in the place of text that is not UTF-8; to look at all text in Python would be slower.
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

    def upserted(self, key: Sequence[str], others: Sequence[str]) -> str:
        return upserted(key, others)

    def raised(self, table: str, key: str, number: str, other: str) -> str:
        return raised(table, key, number, other)


@contextmanager
def snapshot(connection: sqlite3.Connection) -> Iterator[None]:
    """Have all statements within see the same rows."""
    connection.execute("begin")
    try:
        yield
    finally:
        with suppress(sqlite3.Error):  # of a connection that was closed
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
"""What a new column is called; times and decimals, which SQLite has not, are text there."""


def is_time(column: TableColumn) -> bool:
    """True if it is declared as a time, which SQLite has no type for: it holds text or numbers."""
    declared = column.type.upper()
    return isinstance(column.kind, StringType) and not any(part in declared for part in ("CHAR", "CLOB", "TEXT"))


def kind_of(declared: str) -> DataType:
    """Spark's type for what a column is declared as, by SQLite's rules of affinity."""
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
