"""Formats without errors: unchanged bytes, and text."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from ottla.spark.formats.format import Decoded


class Raw:
    """Unchanged bytes, for queries that decode them."""

    def decode(self, column: pa.Array[Any]) -> Decoded:
        return Decoded(column)


class Text:
    """UTF-8; invalid bytes become replacement characters, as in Java."""

    def decode(self, column: pa.Array[Any]) -> Decoded:
        return Decoded(as_text(column))


def as_text(column: pa.Array[Any]) -> pa.Array[Any]:
    """Return the column as strings; nothing is copied if all bytes are UTF-8."""
    try:
        return column.cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array(
            [None if data is None else data.decode("utf-8", "replace") for data in column.to_pylist()], pa.string()
        )
