"""MySQL and MariaDB, by PyMySQL."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any

from pyspark.sql.types import DataType, DecimalType

from ottla.errors import ConfigError
from ottla.extras import extra
from ottla.pipelines.address import shown
from ottla.pipelines.databases.database import CHUNK, DatabaseError, Kind, RefusedRowError, Rows, with_percents
from ottla.pipelines.databases.mysql_address import address_of
from ottla.pipelines.databases.mysql_types import KEYS, TYPES, column_of, literal_of_time, time_of
from ottla.pipelines.databases.table import Keys, Table, grouped, missing_table

CONNECT_SECONDS = 10
STRICT = "STRICT_ALL_TABLES,NO_ZERO_DATE,NO_ZERO_IN_DATE,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION"
"""What does not fit is an error, and not something else that does."""
SETTINGS = (
    f"set time_zone = '+00:00', sql_mode = '{STRICT}'",
    "set session transaction isolation level read committed",  # which locks no gaps between rows
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
OF_A_ROW = ((1292,), (1366,), (1411,), (1644,), (3819,), (4025,))
"""Errors about a value for which PyMySQL has a class of other errors: times, text, SIGNAL, CHECK."""
NO_NUMBER = "can not be used with MySQL"
"""How PyMySQL refuses NaN and infinity."""
TRANSACTIONAL = {"InnoDB", "ROCKSDB", "ndbcluster"}


class Connection:
    """PyMySQL's, which is asked as those of the other drivers are."""

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

        with suppress(pymysql.MySQLError):  # one that broke is closed
            self.driver.close()


class Mysql:
    """A database of a server."""

    placeholder = "%s"
    kind: Kind = "mysql"
    creation = " engine=InnoDB character set utf8mb4 collate utf8mb4_bin"

    def __init__(self, url: str) -> None:
        self.name = shown(url)
        self._address = address_of(url)

    def __repr__(self) -> str:
        return f"Mysql({self.name!r})"

    def open(self) -> Connection:
        with extra("mysql"):
            import pymysql
        with self.telling():
            connection = Connection(
                pymysql.connect(
                    **self._address,
                    autocommit=True,
                    charset="utf8mb4",
                    connect_timeout=CONNECT_SECONDS,
                    program_name="ottla",
                    conv=conversions(),
                    cursorclass=cursors()[0],
                )
            )
            for one in SETTINGS:
                connection.execute(one)
            return connection

    @contextmanager
    def connect(self) -> Iterator[Connection]:
        connection = self.open()
        try:
            with self.telling():
                connection.execute("start transaction")
                yield connection
                connection.execute("commit")
        finally:
            connection.close()  # which rolls back what is not committed

    @contextmanager
    def telling(self) -> Iterator[None]:
        import pymysql

        try:
            yield
        except pymysql.MySQLError as error:
            told = " ".join(str(error.args[-1] if error.args else "").split()) or "the connection is broken"
            of_row = isinstance(error, pymysql.DataError | pymysql.IntegrityError) or error.args[:1] in OF_A_ROW
            of_row = of_row or told.endswith(NO_NUMBER)
            raise (RefusedRowError if of_row else DatabaseError)(f"database {self.name}: {told}") from None

    def table(self, connection: Connection, name: str) -> Table:
        place = self._place(name)
        with self.telling():
            found = connection.execute(COLUMNS, place).fetchall()
            if not found:
                raise missing_table(name, [one for (one,) in connection.execute(TABLES, place[:1]).fetchall()])
            key = tuple(one for (one,) in connection.execute(KEY, place).fetchall())
            (engine,) = connection.execute(ENGINE, place).fetchone()
        # a view has no engine; what it writes to is found out by nobody
        return Table(name, tuple(column_of(*one) for one in found), key, engine is None or engine in TRANSACTIONAL)

    def keys(self, connection: Connection, table: Table) -> Keys:
        place = self._place(table.name)
        with self.telling():
            (is_view,) = connection.execute(VIEW, place).fetchone()
            return None if is_view else grouped(table.key, connection.execute(INDEXES, place).fetchall())

    def _place(self, name: str) -> tuple[str, str]:
        """The database and the table of a name."""
        database, dot, table = name.partition(".")
        return (database, table) if dot else (str(self._address["database"]), name)

    def quoted(self, name: str) -> str:
        return ".".join(map(self.identifier, name.split(".", 1)))

    def identifier(self, name: str) -> str:
        return "`" + name.replace("`", "``") + "`"

    def selected(self, table: Table) -> str:
        return ", ".join(one.query.format(self.identifier(one.name)) for one in table.columns)

    def rows(self, connection: Connection, query: str, values: Sequence[Any] | None) -> Rows:
        with self.telling(), connection.driver.cursor(cursors()[1]) as cursor:
            cursor.execute(query, tuple(values or ()) or None)
            while chunk := cursor.fetchmany(CHUNK):
                yield chunk

    def type_of(self, kind: DataType, is_key: bool = False) -> str:
        if isinstance(kind, DecimalType):
            return f"decimal({kind.precision},{kind.scale})"
        name = (KEYS.get(type(kind)) if is_key else None) or TYPES.get(type(kind))
        if name is None:
            raise ConfigError(
                f"there is no type of MySQL for {kind.simpleString()}; cast it in a step, to string for instance"
            )
        return name

    def upserted(self, key: Sequence[str], others: Sequence[str]) -> str:
        return "on duplicate key update " + ", ".join(f"{one} = values({one})" for one in others or key)

    def raised(self, table: str, key: str, number: str, other: str) -> str:
        grown = f"{other} = if({number} < values({number}), values({other}), {other})"  # first: assignments are done in order
        return f"on duplicate key update {grown}, {number} = greatest({number}, values({number}))"


@cache
def cursors() -> tuple[Any, Any]:
    """The classes of cursors for which a `%` in a quoted name is no placeholder; the second does not fetch all rows at once."""
    from pymysql.cursors import RE_INSERT_VALUES, Cursor, SSCursor

    class Percents(Cursor):  # type: ignore[misc]  # which has no types
        def execute(self, query: str, args: Any = None) -> Any:
            return super().execute(query if args is None else with_percents(query, "`"), args)

        def executemany(self, query: str, args: Any) -> Any:  # which calls `execute` only where this is no INSERT
            return super().executemany(with_percents(query, "`") if RE_INSERT_VALUES.match(query) else query, args)

    return Percents, type("UnbufferedPercents", (Percents, SSCursor), {})


def conversions() -> dict[Any, Any]:
    """PyMySQL's; moments with a zone as what they are in UTC; times that Python does not have as numbers, zero dates as null."""
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
