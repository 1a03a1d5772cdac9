"""The compiled and the plain form of several modules together, for tests that run both on the same bytes."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import ottla.records.columns as compiled
from ottla.records.columns import Columns
from tests.plain import fresh, plain

Decode = Callable[..., Columns]
Row = tuple[int, int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]


def plain_columns() -> ModuleType:
    """`ottla.records.columns` on nothing but uncompiled modules, those that are compiled elsewhere."""
    columns, decoder, survey = (plain(f"ottla.records.{name}") for name in ("columns", "decoder", "survey"))
    replace: dict[ModuleType, dict[str, Any]] = {
        decoder: {"BinaryColumn": plain("ottla.records.binary_column").BinaryColumn, "Batch": survey.Batch},
        columns: {"survey": survey.survey, "RowWriter": decoder.RowWriter, "INTERPRETED": False},
    }
    for module, names in replace.items():
        vars(module).update(names)
    return columns


def plain_header_columns() -> ModuleType:
    """`ottla.records.header_columns` on nothing but uncompiled modules."""
    columns, decoder = plain("ottla.records.header_columns"), plain("ottla.records.decoder")
    vars(columns).update(BinaryWriter=decoder.BinaryWriter)
    return columns


def interpreted_columns() -> ModuleType:
    """`ottla.records.columns` as it runs where nothing is compiled."""
    columns = fresh("ottla.records.columns")
    vars(columns).update(survey=plain("ottla.records.survey").survey, INTERPRETED=True)
    return columns


FORMS: dict[str, ModuleType] = {
    "compiled": compiled,
    "plain": plain_columns(),
    "interpreted": interpreted_columns(),
}


def rows_of(columns: Columns) -> list[Row]:
    """Return the rows of the columns."""
    return [
        (columns.offsets[i], columns.timestamps[i], columns.key(i), columns.value(i), columns.headers(i))
        for i in range(columns.count)
    ]
