"""Copies rows into and out of PostgreSQL by COPY, which is several times as fast as statements and cursors.

COPY is only used if its result is the same. Rows are copied out as CSV lines, which Arrow parses; it cannot parse
bytes, so tables with such columns are read with a cursor. Rows are copied in as text that the column parses, while
INSERT converts values, for instance 1.5 for an integer column. So COPY is used for columns of the value's type, or of
text, and for tables without rules and row policies, which COPY would skip or not be allowed to apply.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    TimestampNTZType,
    TimestampType,
)

from ottla.pipelines.databases.arrow_rows import arrow_of
from ottla.pipelines.databases.binary_copy import binary_of
from ottla.pipelines.databases.database import with_percents
from ottla.pipelines.databases.table import Table
from ottla.pipelines.databases.times import DAY_MICROS, days_of, number_of, text_of_days, text_of_micros

PLAIN = "select not (relhasrules or relrowsecurity) from pg_class where oid = to_regclass(%s)"
OPTIONS = pyarrow.csv.WriteOptions(include_header=False, quoting_style="needed")
"""Text is quoted, to distinguish empty text from null."""
SLICE = 20_000
"""Rows of text encoded at once."""
BLOCK_BYTES = 1 << 22
"""Bytes of lines parsed at once."""
AS_WRITTEN: dict[str, Any] = {
    "null_values": [""],
    "strings_can_be_null": True,
    "quoted_strings_can_be_null": False,
    "true_values": ["t"],
    "false_values": ["f"],
}
"""PostgreSQL's notation of null and booleans."""
FIRST_DAY, LAST_DAY = days_of(1, 1, 1), days_of(9999, 12, 31)
WHOLE_NUMBERS = (ShortType, IntegerType, LongType, DecimalType)


def is_plain(connection: Any, quoted: str) -> bool:
    """Return True if the table has no rules and no row policies."""
    found = connection.execute(PLAIN, (quoted,)).fetchone()
    return found is not None and bool(found[0])


def has_same_text_form(table: Table, columns: Sequence[str], schema: pa.Schema) -> bool:
    """Return True if each column parses the text of these values to the same value."""
    return all(can_take(table.column(name).kind, schema.field(name).type) for name in columns)


def can_take(kind: DataType, given: pa.DataType) -> bool:
    types = pa.types
    if types.is_string(given) or types.is_large_string(given):
        return True
    if types.is_integer(given):
        return isinstance(kind, WHOLE_NUMBERS)
    if types.is_timestamp(given):
        return isinstance(kind, TimestampNTZType if given.tz is None else TimestampType)
    same: list[tuple[bool, type[DataType] | tuple[type[DataType], ...]]] = [
        (types.is_floating(given), (FloatType, DoubleType)),
        (types.is_boolean(given), BooleanType),
        (types.is_binary(given) or types.is_large_binary(given), BinaryType),
        (types.is_date(given), DateType),
        (types.is_decimal(given), DecimalType),
    ]
    return any(is_one and isinstance(kind, wanted) for is_one, wanted in same)


def copy_in(connection: Any, target: str, rows: pa.RecordBatch, as_it_is: bool = False) -> None:
    """Add rows to `target`, a quoted table with its columns; `as_it_is`: the values have the columns' binary format."""
    form = "binary" if as_it_is else "csv"
    with connection.cursor() as cursor, cursor.copy(f"copy {target} from stdin (format {form})") as copy:
        for lines in binary_of(rows) if as_it_is else text_of(rows):
            copy.write(lines)


def text_of(rows: pa.RecordBatch) -> Iterator[bytes]:
    """Yield the rows as lines, in portions."""
    for begin in range(0, rows.num_rows, SLICE):
        yield csv_of(rows.slice(begin, SLICE))


def csv_of(rows: pa.RecordBatch) -> bytes:
    """Return rows as CSV for PostgreSQL: null is empty and unquoted, bytes are hexadecimal."""
    columns = list(map(format_column, rows.columns))
    file = io.BytesIO()
    pyarrow.csv.write_csv(pa.RecordBatch.from_arrays(columns, names=rows.schema.names), file, OPTIONS)
    return file.getvalue()


def format_column(column: Any) -> Any:
    """Return a column in a form that Arrow writes exactly.

    It would drop the seconds of a zone's offset, which historical offsets have, so times are converted to UTC.
    """
    if (pa.types.is_timestamp(column.type) or pa.types.is_date(column.type)) and not is_usual(column):
        return pa.array(text_of_times(column), pa.string())
    if pa.types.is_timestamp(column.type) and column.type.tz is not None:
        return column.cast(pa.timestamp(column.type.unit, "UTC"))
    return hexadecimal(column) if is_bytes(column.type) else column


def is_usual(column: Any) -> bool:
    """Return True if all times are in the years 1 to 9999, which Python and Arrow can write."""
    bounds = pc.min_max(numbers_of(column))
    low, high = bounds["min"].as_py(), bounds["max"].as_py()
    per_day = 1 if pa.types.is_date(column.type) else DAY_MICROS
    return low is None or (FIRST_DAY * per_day <= low and high < (LAST_DAY + 1) * per_day)


def text_of_times(column: Any) -> list[str | None]:
    """Return times as text, for any year."""
    write = text_of_days if pa.types.is_date(column.type) else text_of_micros
    return [None if one is None else write(one) for one in numbers_of(column).to_pylist()]


def numbers_of(column: Any) -> Any:
    """Return days or microseconds since 1970."""
    if pa.types.is_date(column.type):
        return column.cast(pa.date32()).cast(pa.int32())
    return column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64())


def is_bytes(kind: pa.DataType) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def hexadecimal(column: Any) -> Any:
    return pa.array([None if one is None else "\\x" + one.hex() for one in column.to_pylist()], pa.string())


def can_be_copied(schema: pa.Schema) -> bool:
    """Return True if Arrow can parse all columns as PostgreSQL writes them."""
    return not any(is_bytes(field.type) for field in schema)


def copy_out(connection: Any, query: str, values: Sequence[Any], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a query with the columns of the schema; pa.ArrowInvalid for a value that Arrow cannot represent."""
    for lines in copied_lines(connection, query, values):
        yield rows_of(lines, schema)


def copied_lines(connection: Any, query: str, values: Sequence[Any]) -> Iterator[bytes]:
    """Yield the rows of a query as lines of CSV, many at a time."""
    from psycopg import ClientCursor

    filled = ClientCursor(connection).mogrify(with_percents(query, '"'), values)  # a COPY has no parameters
    set_encoding(connection, filled)
    with connection.cursor() as cursor, cursor.copy(f"copy ({filled}) to stdout (format csv)") as copy:
        text = bytearray()
        for line in lines_of(copy, connection.pgconn):
            text += line
            if len(text) > BLOCK_BYTES:
                yield bytes(text)
                text.clear()
        if text:
            yield bytes(text)


def is_unchecked(connection: Any) -> bool:
    """Return True if the database stores any bytes as text, so text may not be UTF-8."""
    return bool(connection.info.parameter_status("server_encoding") == "SQL_ASCII")


def set_encoding(connection: Any, query: str) -> None:
    """Read text of this transaction without conversion: the server would reject a whole query for text that is not UTF-8."""
    if is_unchecked(connection) and query.isascii():  # psycopg then writes queries in ASCII
        connection.execute("set local client_encoding = 'SQL_ASCII'")


class CopiedRows(NamedTuple):
    """Some rows of a query."""

    good: pa.RecordBatch
    bad: list[tuple[Sequence[Any], str]]
    """Each row with a value that its type does not have, and the cause."""
    last: Sequence[Any]
    """The values of the last row, good or bad."""


def copied_rows(connection: Any, query: str, values: Sequence[Any], schema: pa.Schema) -> Iterator[CopiedRows]:
    """Yield the rows of a query; rows with a value that its type does not have are separate."""
    for lines in copied_lines(connection, query, values):
        try:
            rows = rows_of(lines, schema)
            yield CopiedRows(rows, [], [column[-1].as_py() for column in rows.columns])
        except pa.ArrowInvalid:
            yield rows_one_by_one(lines, schema)


def rows_one_by_one(lines: bytes, schema: pa.Schema) -> CopiedRows:
    """Return whole lines of CSV as rows, parsing each value separately."""
    columns = [column.to_pylist() for column in columns_of(lines, [pa.binary()] * len(schema))]
    rows = [
        [value_of(data, kind) for data, kind in zip(row, schema.types, strict=True)]
        for row in zip(*columns, strict=True)
    ]
    good, bad = arrow_of(rows, schema)
    return CopiedRows(good, [(rows[one.row], one.cause) for one in bad], rows[-1])


def value_of(data: bytes | None, kind: pa.DataType) -> Any:
    """Return a value parsed from PostgreSQL's text, or its bytes if its type does not have it."""
    if data is None:
        return None
    try:
        text = data.decode()
        if pa.types.is_decimal(kind):
            return None if text == "NaN" else Decimal(text)
        if pa.types.is_temporal(kind):
            return number_of(text, bool(pa.types.is_date(kind)))
        if pa.types.is_boolean(kind):
            return {"t": True, "f": False}[text]
        if pa.types.is_integer(kind) or pa.types.is_floating(kind):
            return int(text) if pa.types.is_integer(kind) else float(text)
    except (ValueError, ArithmeticError, KeyError):
        return data
    return text


def lines_of(copy: Any, pgconn: Any) -> Iterator[Any]:
    """Yield the lines of a COPY.

    Lines that arrived together are read from libpq directly, which is faster than psycopg's `read` for each.
    """
    while line := copy.read():
        yield line
        while True:
            size, more = pgconn.get_copy_data(1)
            if size <= 0:
                break
            yield more
        if size < 0:  # the end of the COPY; psycopg only detects it in its own `read`
            check_end(pgconn)
            return


def check_end(pgconn: Any) -> None:
    """Read the result of a COPY after its last line, and raise the error that ended it, if any."""
    from psycopg.errors import error_from_result
    from psycopg.pq import ExecStatus

    results = list(iter(pgconn.get_result, None))
    for result in results:
        if result.status != ExecStatus.COMMAND_OK:
            raise error_from_result(result)


def rows_of(lines: bytes, schema: pa.Schema) -> pa.RecordBatch:
    """Return whole lines of CSV as rows."""
    try:
        columns = columns_of(lines, schema.types)
    except pa.ArrowInvalid:  # slower, for times and decimals that Arrow cannot parse
        text = columns_of(lines, [pa.string() if is_special(kind) else kind for kind in schema.types])
        columns = [parse_column(column, kind) for column, kind in zip(text, schema.types, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def columns_of(lines: bytes, types: Sequence[pa.DataType]) -> list[Any]:
    numbers = [str(number) for number in range(len(types))]  # a column may occur twice
    table = pyarrow.csv.read_csv(
        io.BytesIO(lines),
        pyarrow.csv.ReadOptions(column_names=numbers, use_threads=False, block_size=len(lines)),
        pyarrow.csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False),
        pyarrow.csv.ConvertOptions(column_types=dict(zip(numbers, types, strict=True)), **AS_WRITTEN),
    )
    return [column.combine_chunks() for column in table.columns]


def is_special(kind: pa.DataType) -> bool:
    """Return True for types with values that Arrow's parser does not support: infinity, years before Christ and after 9999, NaN."""
    return bool(pa.types.is_temporal(kind) or pa.types.is_decimal(kind))


def parse_column(column: Any, kind: pa.DataType) -> Any:
    """Return a column of text as values of its type; pa.ArrowInvalid for a value that the type does not have."""
    if not is_special(kind):
        return column
    values = column.to_pylist()
    if pa.types.is_decimal(kind):
        return pa.array([None if one in (None, "NaN") else Decimal(one) for one in values], kind)
    try:
        is_date = pa.types.is_date(kind)
        return pa.array([None if one is None else number_of(one, is_date) for one in values], kind)
    except ValueError as error:
        raise pa.ArrowInvalid(str(error)) from None
