"""Divides rows by partition of the table, and converts partition values to Delta's notation. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, cast

import pyarrow as pa
import pyarrow.compute as pc

from ottla.spark.tables.errors import TableError

Values = tuple[tuple[str, str | None], ...]
"""Each partition column with its value."""


def split_by_values(rows: pa.RecordBatch, columns: tuple[str, ...]) -> Iterator[tuple[Values, pa.RecordBatch]]:
    """Yield the rows of each partition, in their order."""
    if not columns:
        yield (), rows
        return
    keys = pa.Table.from_batches([rows.select(list(columns))])
    for key in to_python(keys.group_by(list(columns)).aggregate([]).select(list(columns))):
        values = tuple((name, format_value(name, key[name])) for name in columns)
        yield values, rows.filter(row_mask(rows, key))


def to_python(keys: pa.Table) -> list[dict[str, Any]]:
    """Return rows as Python values; TableError for a time that cannot be a partition value."""
    try:
        return keys.to_pylist()
    except (OverflowError, ValueError):
        pass
    for name in keys.column_names:
        for number, one in enumerate(keys.column(name)):
            try:
                one.as_py()
            except (OverflowError, ValueError):
                text = keys.column(name).cast(pa.int32() if pa.types.is_date(one.type) else pa.int64())[number]
                unit = "days" if pa.types.is_date(one.type) else "microseconds"
                raise TableError(
                    f"column {name!r} cannot be a partition column with a time outside of the years 1 to 9999 ({text} {unit} since 1970); filter "
                    "out such rows, or use another column"
                ) from None
    raise AssertionError("each value has a place")


def row_mask(rows: pa.RecordBatch, key: dict[str, Any]) -> pa.BooleanArray:
    """Return a mask of the rows with these values; null equals null."""
    found: Any = None
    for name, value in key.items():
        column = rows.column(name)
        same: Any = pc.is_null(column) if value is None else pc.equal(column, pa.scalar(value, column.type))
        same = pc.fill_null(same, False)
        found = same if found is None else pc.and_(found, same)
    return cast(pa.BooleanArray, found)


def format_value(column: str, value: object) -> str | None:
    """Return a value in the notation of Delta's log; empty text is null there."""
    match value:
        case None | "":
            return None
        case bool():
            return str(value).lower()
        case datetime():
            moment = value.astimezone(UTC) if value.tzinfo else value
            return moment.strftime("%Y-%m-%d %H:%M:%S.%f")
        case str() | int() | Decimal():
            return str(value)
        case date():
            return value.isoformat()
    raise TableError(
        f"column {column!r} cannot be a partition column: its values are {type(value).__name__}; use another"
    )


def drop_columns(rows: pa.RecordBatch, columns: tuple[str, ...]) -> pa.RecordBatch:
    """Return the rows without these columns."""
    return rows.select([name for name in rows.schema.names if name not in columns])
