"""Rows sorted by the partition of the table they belong to, and how Delta writes a partition's values. Pure."""

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


def split(rows: pa.RecordBatch, columns: tuple[str, ...]) -> Iterator[tuple[Values, pa.RecordBatch]]:
    """The rows of each partition, in their order."""
    if not columns:
        yield (), rows
        return
    keys = pa.Table.from_batches([rows.select(list(columns))])
    for key in plain(keys.group_by(list(columns)).aggregate([]).select(list(columns))):
        values = tuple((name, written(name, key[name])) for name in columns)
        yield values, rows.filter(mask(rows, key))


def plain(keys: pa.Table) -> list[dict[str, Any]]:
    """Rows as Python's values; TableError for a time that has no place in the name of a partition."""
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
                    f"column {name!r} cannot divide a table by a time outside of the years 1 to 9999, which {text} {unit} since 1970 is; leave "
                    "such rows out in a step, or take another column"
                ) from None
    raise AssertionError("each value has a place")


def mask(rows: pa.RecordBatch, key: dict[str, Any]) -> pa.BooleanArray:
    """Which rows have these values; null is like null."""
    found: Any = None
    for name, value in key.items():
        column = rows.column(name)
        same: Any = pc.is_null(column) if value is None else pc.equal(column, pa.scalar(value, column.type))
        same = pc.fill_null(same, False)
        found = same if found is None else pc.and_(found, same)
    return cast(pa.BooleanArray, found)


def written(column: str, value: object) -> str | None:
    """A value as Delta's log has it; empty text is null there."""
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
    raise TableError(f"column {column!r} cannot divide a table: its values are {type(value).__name__}; take another")


def without(rows: pa.RecordBatch, columns: tuple[str, ...]) -> pa.RecordBatch:
    """The rows less the columns their partition says."""
    return rows.select([name for name in rows.schema.names if name not in columns])
