"""Rows of a driver as Arrow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from ottla.pipelines.databases.database import DatabaseError


def arrow_of(table: str, rows: Sequence[Sequence[Any]], schema: pa.Schema) -> pa.RecordBatch:
    """A batch of them; DatabaseError for a value that is not what its column is declared as."""
    columns = zip(*rows, strict=True) if rows else [()] * len(schema)
    arrays = [array_of(table, field, list(values)) for field, values in zip(schema, columns, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def array_of(table: str, field: Any, values: list[Any]) -> Any:
    """A column."""
    if pa.types.is_boolean(field.type):
        values = [bool(one) if isinstance(one, int) else one for one in values]
    try:
        return pa.array(values, field.type)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, ValueError, TypeError):
        wrong = next((one for one in values if not fits(one, field.type)), None)
    told = repr(wrong) if len(repr(wrong)) <= 60 else repr(wrong)[:59] + "…"
    raise DatabaseError(
        f"table {table}: {told} in column {field.name!r} is no {field.type}; mend the row, or leave the column out of columns"
    )


def fits(value: Any, kind: Any) -> bool:
    try:
        pa.array([value], kind)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, ValueError, TypeError):
        return False
    return True
