"""Converts rows of a database to Arrow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from ottla.pipelines.dead_letters import short_repr

UNFIT = (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, ValueError, TypeError, ArithmeticError)
"""The errors that Arrow raises for a value that its type cannot hold."""


class BadValue(NamedTuple):
    """A value that does not match its column's declared type."""

    row: int
    column: str
    cause: str


class ArrowRows(NamedTuple):
    """The rows that can be read, and the first bad value of each other row."""

    good: pa.RecordBatch
    bad: list[BadValue]


def arrow_of(rows: Sequence[Sequence[Any]], schema: pa.Schema) -> ArrowRows:
    """Return a batch of the rows without those that have a value that its column's type does not have."""
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(schema)
    try:
        arrays = [array_of(field, values) for field, values in zip(schema, columns, strict=True)]
        return ArrowRows(pa.RecordBatch.from_arrays(arrays, schema=schema), [])
    except UNFIT:
        bad = dict[int, BadValue]()
    for field, values in zip(schema, columns, strict=True):
        for row, value in enumerate(values):
            if row not in bad and not can_hold(field, value):
                cause = f"value {short_repr(value)} of column {field.name!r} is not of type {field.type}"
                bad[row] = BadValue(row, field.name, cause)
    good = [row for at, row in enumerate(rows) if at not in bad]
    return ArrowRows(arrow_of(good, schema).good, [bad[row] for row in sorted(bad)])


def array_of(field: Any, values: Sequence[Any]) -> Any:
    """Return a column; one of `UNFIT` for a value that its type does not have."""
    if pa.types.is_boolean(field.type):
        values = [bool(one) if isinstance(one, int) else one for one in values]
    if pa.types.is_integer(field.type) and float in set(map(type, values)):  # Arrow would round down
        values = [to_whole_number(one) for one in values]
    return pa.array(values, field.type)


def to_whole_number(value: Any) -> Any:
    """Return a number without a fraction as an integer; ValueError for one with a fraction."""
    if isinstance(value, float):
        if not value.is_integer():
            raise ValueError(f"{value} is not a whole number")
        return int(value)
    return value


def can_hold(field: Any, value: Any) -> bool:
    """Return True if the column's type has the value."""
    try:
        array_of(field, [value])
    except UNFIT:
        return False
    return True
