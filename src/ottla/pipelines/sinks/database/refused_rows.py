"""Rows that a table refuses, as records of the dead-letter topic: the row as JSON, with the column and the cause in Connect's headers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from pyspark.sql.types import IntegerType, LongType, ShortType, StringType

from ottla.pipelines.databases.table import Table, TableColumn

LIMITS: dict[type[Any], int] = {ShortType: 15, IntegerType: 31, LongType: 63}
LENGTH = re.compile(r"char\w*(?: varying)?\((\d+)\)")


def cause_of(error: Exception, table: Table, values: Mapping[str, Any]) -> str:
    """The cause, with the column where the database does not name it."""
    told = " ".join(str(error).split()) or type(error).__name__
    for name, wrong in wrong_columns(table, values):
        return f"column {name!r} {wrong}: {told}"
    return told


def wrong_columns(table: Table, values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The columns whose values do not fit."""
    for column in table.columns:
        if column.name in values and (wrong := misfit(column, values[column.name])) is not None:
            yield column.name, wrong


def misfit(column: TableColumn, value: Any) -> str | None:
    """What is wrong with a value, as far as its column's type says it."""
    if isinstance(value, str) and "\0" in value:
        return "has the character NUL"
    bits = LIMITS.get(type(column.kind))
    if isinstance(value, int) and bits is not None and not -(1 << bits) <= value < 1 << bits:
        return f"is {column.type}, which {value} does not fit into"
    length = LENGTH.search(column.type)
    if isinstance(value, str) and isinstance(column.kind, StringType) and length and len(value) > int(length[1]):
        return f"is {column.type}, and the value has {len(value)} characters"
    return None
