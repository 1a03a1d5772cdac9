"""The columns and keys of tables in which rows are replaced and deleted."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from ottla.pipelines.rows import KEY, TOMBSTONE, checked_names, column, values

DELETED = "_deleted"
"""A boolean column in addition to the row's own: true for a row to delete."""


def upserts(frame: DataFrame, keys: Sequence[str], deletes: bool) -> DataFrame:
    """Return the value's columns, and with `deletes` whether each row is a tombstone; the key of a tombstone is its record's."""
    names = values(frame)
    checked_names(names, keys)
    dead = column(TOMBSTONE) if TOMBSTONE in frame.columns else F.lit(False)
    if not deletes:
        return frame.where(~dead).select(*map(column, names))
    fields = {name: of_key(frame, name, len(keys)) if name in keys else column(name) for name in names}
    return frame.select(*(one.alias(name) for name, one in fields.items()), dead.alias(DELETED))


def of_key(frame: DataFrame, name: str, count: int) -> Column:
    """Return a column of the key. A tombstone has no value, so its column is the field of the record's key."""
    own = column(name)
    if KEY not in frame.columns:
        return own
    kind, wanted = frame.schema[KEY].dataType, frame.schema[name].dataType
    if isinstance(kind, StructType):
        return F.coalesce(own, column(KEY)[name].cast(wanted)) if name in kind.names else own
    return own if count > 1 else F.coalesce(own, column(KEY).cast("string").cast(wanted))
