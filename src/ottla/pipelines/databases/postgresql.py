"""PostgreSQL, with psycopg."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    TimestampNTZType,
    TimestampType,
)

from ottla.errors import ConfigError
from ottla.extras import extra
from ottla.pipelines.address import without_secrets
from ottla.pipelines.databases.copying import is_unchecked, set_encoding
from ottla.pipelines.databases.database import CHUNK, DatabaseError, Kind, RefusedRowError, Rows, with_percents
from ottla.pipelines.databases.identifiers import quote_identifier
from ottla.pipelines.databases.on_conflict import raise_clause, upsert_clause
from ottla.pipelines.databases.table import Keys, Table, TableColumn, missing_table
from ottla.pipelines.databases.times import number_of

SETTINGS = "-c client_encoding=UTF8 -c timezone=UTC -c datestyle=ISO -c extra_float_digits=1 -c bytea_output=hex"
"""The settings for COPY. The database may store text in another encoding than UTF-8."""
CONNECT_SECONDS = 10

KINDS: dict[str, DataType] = {
    "int2": ShortType(),
    "int4": IntegerType(),
    "int8": LongType(),
    "float4": FloatType(),
    "float8": DoubleType(),
    "bool": BooleanType(),
    "text": StringType(),
    "varchar": StringType(),
    "bpchar": StringType(),
    "bytea": BinaryType(),
    "date": DateType(),
    "timestamp": TimestampNTZType(),
    "timestamptz": TimestampType(),
}
"""Types that Spark has too; all others are read as text in PostgreSQL's notation."""

COLUMNS = """
select a.attname, format_type(a.atttypid, a.atttypmod), t.typname, a.atttypmod, a.attnotnull,
       array_position(i.indkey::int2[], a.attnum)
from pg_attribute a join pg_type t on t.oid = a.atttypid
left join pg_index i on i.indrelid = a.attrelid and i.indisprimary
and array_position(i.indkey::int2[], a.attnum) < i.indnkeyatts
where a.attrelid = to_regclass(%s) and a.attnum > 0 and not a.attisdropped order by a.attnum
"""
VIEW = "select relkind in ('v', 'f') from pg_class where oid = to_regclass(%s)"
KEYS = """
select array_agg(a.attname::text order by array_position(i.indkey::int2[], a.attnum))
from pg_index i join pg_attribute a on a.attrelid = i.indrelid
and array_position(i.indkey::int2[], a.attnum) < i.indnkeyatts
where i.indrelid = to_regclass(%s) and i.indisunique and i.indisvalid and i.indimmediate
and i.indpred is null and i.indexprs is null
group by i.indexrelid, i.indisprimary order by i.indisprimary desc, i.indexrelid
"""
"""The keys that an insert can use as conflict target."""
TABLES = """
select case when schemaname = current_schema() then relname else schemaname || '.' || relname end
from pg_stat_user_tables
"""


class Postgresql:
    """A database of a server."""

    placeholder = "%s"
    kind: Kind = "postgresql"
    creation = ""

    def __init__(self, url: str) -> None:
        self.url, self.name = url, without_secrets(url)

    def __repr__(self) -> str:
        return f"Postgresql({self.name!r})"

    def open(self, **more: Any) -> Any:
        with extra("postgres"):
            import psycopg
        with self.translated_errors():
            connection: Any = psycopg.connect(
                self.url,
                autocommit=True,
                options=SETTINGS,
                connect_timeout=CONNECT_SECONDS,
                application_name="ottla",
                **more,
            )
        connection.cursor_factory, connection.server_cursor_factory = cursor_classes()
        register_loaders(connection)
        register_text_loaders(connection)
        return connection

    @contextmanager
    def connect(self) -> Iterator[Any]:
        connection = self.open()
        try:
            with self.translated_errors(), connection.transaction():
                yield connection
        finally:
            connection.close()

    @contextmanager
    def translated_errors(self) -> Iterator[None]:
        import psycopg

        try:
            yield
        except psycopg.Error as error:
            text = " ".join(str(error).split()) or type(error).__name__
            of_row = isinstance(error, psycopg.DataError | psycopg.IntegrityError | psycopg.errors.RaiseException)
            raise (RefusedRowError if of_row else DatabaseError)(f"database {self.name}: {text}") from None

    def describe_table(self, connection: Any, name: str) -> Table:
        with self.translated_errors():
            found = connection.execute(COLUMNS, (self.quote_table(name),)).fetchall()
            if not found:
                raise missing_table(name, [one for (one,) in connection.execute(TABLES)])
        key = tuple(one[0] for one in sorted(found, key=lambda one: one[5] or 0) if one[5] is not None)
        return Table(name, tuple(column_of(*one[:5]) for one in found), key)

    def find_keys(self, connection: Any, table: Table) -> Keys:
        name = self.quote_table(table.name)
        with self.translated_errors():
            (is_view,) = connection.execute(VIEW, (name,)).fetchone()
            return None if is_view else [one for (one,) in connection.execute(KEYS, (name,))]

    def quote_table(self, name: str) -> str:
        return ".".join(map(self.quote_column, name.split(".")))

    def quote_column(self, name: str) -> str:
        return quote_identifier(name)

    def select_list(self, table: Table) -> str:
        names = [(self.quote_column(one.name), one.as_text) for one in table.columns]
        return ", ".join(f"{name}::text" if as_text else name for name, as_text in names)

    def iter_rows(self, connection: Any, query: str, values: Sequence[Any] | None) -> Rows:
        with self.translated_errors(), connection.transaction(), connection.cursor("ottla", withhold=False) as cursor:
            cursor.itersize = CHUNK
            set_encoding(connection, query)
            cursor.execute(query, values)
            while chunk := cursor.fetchmany(CHUNK):
                yield chunk

    def type_of(self, kind: DataType, is_key: bool = False) -> str:
        if isinstance(kind, DecimalType):
            return f"numeric({kind.precision},{kind.scale})"
        name = TYPES.get(type(kind))
        if name is None:
            raise ConfigError(
                f"there is no type of PostgreSQL for {kind.simpleString()}; cast it in a step, to string for instance"
            )
        return name

    def upsert_clause(self, key: Sequence[str], others: Sequence[str]) -> str:
        return upsert_clause(key, others)

    def raise_clause(self, table: str, key: str, number: str, other: str) -> str:
        return raise_clause(table, key, number, other)


def register_loaders(connection: Any) -> None:
    """Read times that Python cannot represent as numbers, and a NaN in `numeric`, which Spark's decimals do not have, as null."""
    import psycopg
    from psycopg.adapt import Loader
    from psycopg.pq import Format

    adapters = connection.adapters

    def loader(name: str) -> type[Loader]:
        usual = adapters.get_loader(adapters.types[name].oid, Format.TEXT)

        class TimeLoader(Loader):
            def __init__(self, oid: int, context: Any = None) -> None:
                super().__init__(oid, context)
                self._load = usual(oid, context).load

            def load(self, data: Any) -> Any:
                try:
                    return self._load(data)
                except psycopg.DataError:
                    return number_of(bytes(data).decode(), name == "date")

        class DecimalLoader(TimeLoader):
            def load(self, data: Any) -> Any:
                return None if bytes(data) == b"NaN" else self._load(data)

        return DecimalLoader if name == "numeric" else TimeLoader

    for name in ("date", "timestamp", "timestamptz", "numeric"):
        adapters.register_loader(name, loader(name))


def register_text_loaders(connection: Any) -> None:
    """Read text that is not UTF-8 as bytes, if the server does not check it."""
    from psycopg.adapt import Loader

    class AnyTextLoader(Loader):
        def load(self, data: Any) -> Any:
            try:
                return bytes(data).decode()
            except UnicodeDecodeError:
                return bytes(data)

    if is_unchecked(connection):
        for name in ("text", "varchar", "bpchar"):
            connection.adapters.register_loader(name, AnyTextLoader)


@cache
def cursor_classes() -> tuple[Any, Any]:
    """Return the cursor classes in which `%` in a quoted name is not a placeholder; the second one is for server-side cursors."""
    import psycopg

    class Cursor(psycopg.Cursor[Any]):
        def execute(self, query: Any, params: Any = None, **more: Any) -> Any:
            return super().execute(query if params is None else with_percents(query, '"'), params, **more)

        def executemany(self, query: Any, params_seq: Any, **more: Any) -> None:
            super().executemany(with_percents(query, '"'), params_seq, **more)

    class ServerCursor(psycopg.ServerCursor[Any]):
        def execute(self, query: Any, params: Any = None, **more: Any) -> Any:
            return super().execute(query if params is None else with_percents(query, '"'), params, **more)

    return Cursor, ServerCursor


TYPES: dict[type[DataType], str] = {
    ByteType: "smallint",
    ShortType: "smallint",
    IntegerType: "integer",
    LongType: "bigint",
    FloatType: "real",
    DoubleType: "double precision",
    BooleanType: "boolean",
    StringType: "text",
    BinaryType: "bytea",
    DateType: "date",
    TimestampType: "timestamptz",
    TimestampNTZType: "timestamp",
}


def column_of(name: str, declared: str, kind: str, modifier: int, is_filled: bool) -> TableColumn:
    """Return a column as described by the catalogue."""
    found = decimal_of(modifier) if kind == "numeric" else KINDS.get(kind)
    return TableColumn(name, declared, found or StringType(), not is_filled, found is None)


def decimal_of(modifier: int) -> DataType | None:
    """Return the type of a `numeric` from its modifier, which has precision and scale; None if it exceeds Spark's decimals."""
    if modifier < 0:
        return None
    precision, scale = (modifier - 4) >> 16 & 0xFFFF, (modifier - 4) & 0x7FF
    return DecimalType(precision, scale) if precision <= 38 and scale <= precision else None
