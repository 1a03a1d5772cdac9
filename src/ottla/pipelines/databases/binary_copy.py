"""Which rows PostgreSQL is given in its binary form, and Arrow's columns on the way there.

Only values whose bytes mean the same on both sides: each type of Arrow has one of PostgreSQL. All else goes as text, which is slower.
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
"""From 1970 to 2000, with which PostgreSQL's times begin; no scalars of Arrow's, the first of which loads all of pandas."""
SLICE = 20_000
"""Rows whose bytes are held at once."""
NO_BOUNDS = memoryview(b"").cast("i")


def goes_as_it_is(table: Table, columns: Sequence[str], schema: pa.Schema) -> bool:
    """Whether the bytes of all these values are what their columns have; never without compiled loops, which text needs not."""
    return runs_compiled(binary_rows) and all(has_the_bytes(table, name, schema.field(name).type) for name in columns)


def has_the_bytes(table: Table, name: str, given: pa.DataType) -> bool:
    there, kind = table.column(name), kind_of(given)
    return kind is not None and isinstance(there.kind, kind) and not there.as_text


def kind_of(given: Any) -> type[DataType] | None:
    """The type of Spark's whose column in PostgreSQL has the same bytes, if there is one."""
    if pa.types.is_timestamp(given) and given.unit == "us":
        return TimestampNTZType if given.tz is None else TimestampType
    return KINDS.get(given)


def binary_of(rows: pa.RecordBatch) -> Iterator[Buffer]:
    """Rows between a beginning and an end, so many at a time."""
    yield HEADER
    for begin in range(0, rows.num_rows, SLICE):
        some = rows.slice(begin, SLICE)
        yield encode(list(map(field_of, some.columns)), some.num_rows)
    yield TRAILER


def field_of(column: Any) -> BinaryField:
    """A column of one of `KINDS`."""
    plain = as_numbers(column)
    bits, *rest = plain.buffers()
    bits = bits if plain.null_count else None
    if len(rest) == 1:
        return BinaryField(plain.type.bit_width // 8, plain.offset, octets(rest[0]), NO_BOUNDS, octets(bits))
    bounds = NO_BOUNDS if rest[0] is None else octets(rest[0]).cast("i")
    return BinaryField(0, plain.offset, octets(rest[1]), bounds, octets(bits))


def as_numbers(column: Any) -> Any:
    """Times since 2000, booleans a byte each; all else as it is."""
    kind = column.type
    if pa.types.is_timestamp(kind):
        return pc.subtract_checked(column.cast(pa.int64()), pa.scalar(MICROSECONDS, pa.int64()))
    if pa.types.is_date(kind):
        return pc.subtract_checked(column.cast(pa.int32()), pa.scalar(DAYS, pa.int32()))
    return column.cast(pa.uint8()) if pa.types.is_boolean(kind) else column


def octets(buffer: Any) -> memoryview:
    return memoryview(b"" if buffer is None else buffer).cast("B")
