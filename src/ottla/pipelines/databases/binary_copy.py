"""Chooses the rows that are sent to PostgreSQL in its binary format, and prepares Arrow's columns for it.

Only types with the same meaning on both sides are sent as binary: each type of Arrow has one type of PostgreSQL. All
others are sent as text, which is slower.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    TimestampNTZType,
    TimestampType,
)

from ottla.compiled import runs_compiled
from ottla.model import Buffer
from ottla.pipelines.databases import binary_rows
from ottla.pipelines.databases.binary_rows import HEADER, TRAILER, BinaryField, encode
from ottla.pipelines.databases.table import Table

KINDS: dict[Any, type[DataType]] = {
    pa.int16(): ShortType,
    pa.int32(): IntegerType,
    pa.int64(): LongType,
    pa.float32(): FloatType,
    pa.float64(): DoubleType,
    pa.bool_(): BooleanType,
    pa.date32(): DateType,
    pa.string(): StringType,
    pa.binary(): BinaryType,
}
DAYS, MICROSECONDS = 10_957, 946_684_800_000_000
"""The distance from 1970 to 2000, PostgreSQL's epoch. Not Arrow scalars: the first of these loads pandas."""
SLICE = 20_000
"""Rows encoded at once."""
NO_BOUNDS = memoryview(b"").cast("i")


def is_binary_compatible(table: Table, columns: Sequence[str], schema: pa.Schema) -> bool:
    """Return True if all values have the binary format of their columns; False without compiled loops, where text is faster."""
    return runs_compiled(binary_rows) and all(is_binary_equal(table, name, schema.field(name).type) for name in columns)


def is_binary_equal(table: Table, name: str, given: pa.DataType) -> bool:
    there, kind = table.column(name), kind_of(given)
    return kind is not None and isinstance(there.kind, kind) and not there.as_text


def kind_of(given: Any) -> type[DataType] | None:
    """Return the Spark type for which PostgreSQL's column has the same binary format, or None."""
    if pa.types.is_timestamp(given) and given.unit == "us":
        return TimestampNTZType if given.tz is None else TimestampType
    return KINDS.get(given)


def binary_of(rows: pa.RecordBatch) -> Iterator[Buffer]:
    """Yield the header, the rows in portions, and the trailer."""
    yield HEADER
    for begin in range(0, rows.num_rows, SLICE):
        some = rows.slice(begin, SLICE)
        yield encode(list(map(field_of, some.columns)), some.num_rows)
    yield TRAILER


def field_of(column: Any) -> BinaryField:
    """Return the buffers of a column of one of `KINDS`."""
    plain = as_numbers(column)
    bits, *rest = plain.buffers()
    bits = bits if plain.null_count else None
    if len(rest) == 1:
        return BinaryField(plain.type.bit_width // 8, plain.offset, view_octets(rest[0]), NO_BOUNDS, view_octets(bits))
    bounds = NO_BOUNDS if rest[0] is None else view_octets(rest[0]).cast("i")
    return BinaryField(0, plain.offset, view_octets(rest[1]), bounds, view_octets(bits))


def as_numbers(column: Any) -> Any:
    """Return times as numbers since 2000 and booleans as a byte each; other columns unchanged."""
    kind = column.type
    if pa.types.is_timestamp(kind):
        return pc.subtract_checked(column.cast(pa.int64()), pa.scalar(MICROSECONDS, pa.int64()))
    if pa.types.is_date(kind):
        return pc.subtract_checked(column.cast(pa.int32()), pa.scalar(DAYS, pa.int32()))
    return column.cast(pa.uint8()) if pa.types.is_boolean(kind) else column


def view_octets(buffer: Any) -> memoryview:
    return memoryview(b"" if buffer is None else buffer).cast("B")
