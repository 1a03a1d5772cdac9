"""MySQL and MariaDB, with PyMySQL."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from pyspark.sql.types import DataType, DecimalType

from ottla.config import unknown
from ottla.errors import ConfigError
from ottla.extras import extra
from ottla.pipelines.address import without_secrets
from ottla.pipelines.databases.database import CHUNK, DatabaseError, Kind, RefusedRowError, Rows, with_percents
from ottla.pipelines.databases.mysql_types import KEYS, TYPES, column_of, literal_of_time, time_of
from ottla.pipelines.databases.table import Keys, Table, group_keys, missing_table

CONNECT_SECONDS = 10
STRICT = "STRICT_ALL_TABLES,NO_ZERO_DATE,NO_ZERO_IN_DATE,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION"
"""Values that do not fit raise an error and are not adjusted."""
SETTINGS = (
    f"set time_zone = '+00:00', sql_mode = '{STRICT}'",
    "set session transaction isolation level read committed",  # takes no gap locks
)
COLUMNS = """
select column_name, data_type, column_type, numeric_precision, numeric_scale, is_nullable = 'YES'
from information_schema.columns where table_schema = %s and table_name = %s order by ordinal_position
"""
KEY = """
select column_name from information_schema.statistics
where table_schema = %s and table_name = %s and index_name = 'PRIMARY' order by seq_in_index
"""
INDEXES = """
select index_name, if(sub_part is null, column_name, null) from information_schema.statistics
where table_schema = %s and table_name = %s and not non_unique order by index_name, seq_in_index
"""
VIEW = "select table_type = 'VIEW' from information_schema.tables where table_schema = %s and table_name = %s"
ENGINE = "select engine from information_schema.tables where table_schema = %s and table_name = %s"
TABLES = "select table_name from information_schema.tables where table_schema = %s"
ROW_ERRORS = ((1292,), (1366,), (1411,), (1644,), (3819,), (4025,))
"""Errors about a value for which PyMySQL raises another class: times, text, SIGNAL, CHECK."""
NO_NUMBER = "can not be used with MySQL"
"""The end of PyMySQL's error for NaN and infinity."""
TRANSACTIONAL = {"InnoDB", "ROCKSDB", "ndbcluster"}


class MysqlConnection:
    """A PyMySQL connection with the interface of the other drivers'."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver
        self.is_mariadb = "mariadb" in str(driver.server_version).lower()

    def execute(self, query: str, values: Sequence[Any] = ()) -> Any:
        cursor = self.driver.cursor()
        cursor.execute(query, tuple(values) or None)
        return cursor

    def cursor(self) -> Any:
        return self.driver.cursor()

    def close(self) -> None:
        import pymysql

        with suppress(pymysql.MySQLError):  # a broken connection is closed already
            self.driver.close()


class Mysql:
    """A database of a server."""

    placeholder = "%s"
    kind: Kind = "mysql"
    creation = " engine=InnoDB character set utf8mb4 collate utf8mb4_bin"

    def __init__(self, url: str) -> None:
        self.name = without_secrets(url)
        self._address = address_of(url)

    def __repr__(self) -> str:
        return f"Mysql({self.name!r})"

    def open(self) -> MysqlConnection:
        with extra("mysql"):
            import pymysql
        with self.translated_errors():
            connection = MysqlConnection(
                pymysql.connect(
                    **self._address,
                    autocommit=True,
                    charset="utf8mb4",
                    connect_timeout=CONNECT_SECONDS,
                    program_name="ottla",
                    conv=value_conversions(),
                    cursorclass=cursor_classes()[0],
                )
            )
            for one in SETTINGS:
                connection.execute(one)
            return connection

    @contextmanager
    def connect(self) -> Iterator[MysqlConnection]:
        connection = self.open()
        try:
            with self.translated_errors():
                connection.execute("start transaction")
                yield connection
                connection.execute("commit")
        finally:
            connection.close()  # rolls back an uncommitted transaction

    @contextmanager
    def translated_errors(self) -> Iterator[None]:
        import pymysql

        try:
            yield
        except pymysql.MySQLError as error:
            text = " ".join(str(error.args[-1] if error.args else "").split()) or "the connection is broken"
            of_row = isinstance(error, pymysql.DataError | pymysql.IntegrityError) or error.args[:1] in ROW_ERRORS
            of_row = of_row or text.endswith(NO_NUMBER)
            raise (RefusedRowError if of_row else DatabaseError)(f"database {self.name}: {text}") from None

    def describe_table(self, connection: MysqlConnection, name: str) -> Table:
        place = self._split_name(name)
        with self.translated_errors():
            found = connection.execute(COLUMNS, place).fetchall()
            if not found:
                raise missing_table(name, [one for (one,) in connection.execute(TABLES, place[:1]).fetchall()])
            key = tuple(one for (one,) in connection.execute(KEY, place).fetchall())
            (engine,) = connection.execute(ENGINE, place).fetchone()
        # A view has no engine; the engine of its tables is not checked.
        return Table(name, tuple(column_of(*one) for one in found), key, engine is None or engine in TRANSACTIONAL)

    def find_keys(self, connection: MysqlConnection, table: Table) -> Keys:
        place = self._split_name(table.name)
        with self.translated_errors():
            (is_view,) = connection.execute(VIEW, place).fetchone()
            return None if is_view else group_keys(table.key, connection.execute(INDEXES, place).fetchall())

    def _split_name(self, name: str) -> tuple[str, str]:
        """Return the database and the table of a name."""
        database, dot, table = name.partition(".")
        return (database, table) if dot else (str(self._address["database"]), name)

    def quote_table(self, name: str) -> str:
        return ".".join(map(self.quote_column, name.split(".", 1)))

    def quote_column(self, name: str) -> str:
        return "`" + name.replace("`", "``") + "`"

    def select_list(self, table: Table) -> str:
        return ", ".join(one.query.format(self.quote_column(one.name)) for one in table.columns)

    def iter_rows(self, connection: MysqlConnection, query: str, values: Sequence[Any] | None) -> Rows:
        with self.translated_errors(), connection.driver.cursor(cursor_classes()[1]) as cursor:
            cursor.execute(query, tuple(values or ()) or None)
            while chunk := cursor.fetchmany(CHUNK):
                yield chunk

    def type_of(self, kind: DataType, is_key: bool = False) -> str:
        if isinstance(kind, DecimalType):
            return f"decimal({kind.precision},{kind.scale})"
        name = (KEYS.get(type(kind)) if is_key else None) or TYPES.get(type(kind))
        if name is None:
            raise ConfigError(
                f"there is no type of MySQL for {kind.simpleString()}; cast it in a transform, for instance to string"
            )
        return name

    def upsert_clause(self, key: Sequence[str], others: Sequence[str]) -> str:
        return "on duplicate key update " + ", ".join(f"{one} = values({one})" for one in others or key)

    def raise_clause(self, table: str, key: str, number: str, other: str) -> str:
        grown = f"{other} = if({number} < values({number}), values({other}), {other})"  # first, because assignments are made in order
        return f"on duplicate key update {grown}, {number} = greatest({number}, values({number}))"


@cache
def cursor_classes() -> tuple[Any, Any]:
    """Return the cursor classes in which `%` in a quoted name is not a placeholder; the second one streams rows."""
    from pymysql.cursors import RE_INSERT_VALUES, Cursor, SSCursor

    class Percents(Cursor):  # type: ignore[misc]  # PyMySQL has no types
        def execute(self, query: str, args: Any = None) -> Any:
            return super().execute(query if args is None else with_percents(query, "`"), args)

        def executemany(self, query: str, args: Any) -> Any:  # calls `execute` only for statements other than INSERT
            return super().executemany(with_percents(query, "`") if RE_INSERT_VALUES.match(query) else query, args)

    return Percents, type("UnbufferedPercents", (Percents, SSCursor), {})


def value_conversions() -> dict[Any, Any]:
    """Return PyMySQL's conversions with changes.

    Times with a zone are written in UTC, times that Python cannot represent are read as numbers, and zero dates as null.
    """
    from datetime import datetime

    from pymysql.constants import FIELD_TYPE
    from pymysql.converters import conversions as known
    from pymysql.converters import convert_date, convert_datetime

    times = {
        FIELD_TYPE.DATE: lambda text: time_of(convert_date(text), is_date=True),
        FIELD_TYPE.DATETIME: lambda text: time_of(convert_datetime(text), is_date=False),
        FIELD_TYPE.TIMESTAMP: lambda text: time_of(convert_datetime(text), is_date=False),
    }
    return {**known, datetime: literal_of_time, **times}


PORT = 3306
OPTIONS = ("ssl_ca", "ssl_cert", "ssl_key", "unix_socket")
"""The options after `?`, by PyMySQL's names."""


def address_of(url: str) -> dict[str, Any]:
    """Return PyMySQL's arguments for an address; ConfigError, without the address, which may have a password."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise ConfigError(f"url: {error}; write for example mysql://user@host:3306/name") from None
    name = unquote(parts.path.removeprefix("/"))
    if not host or not name or "/" in name:
        raise ConfigError("url needs a host and a database; write for example mysql://user@host/name")
    options = dict(parse_qsl(parts.query))
    for one in options:
        if one not in OPTIONS:
            raise ConfigError(f"url: {unknown('option of MySQL', one, OPTIONS)}")
    return {
        "host": host,
        "port": port or PORT,
        "user": unquote(parts.username or ""),
        "password": unquote(parts.password or ""),
        "database": name,
        **options,
    }
