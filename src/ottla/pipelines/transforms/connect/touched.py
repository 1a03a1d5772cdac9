"""A step that touches only some rows."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ottla.errors import ConfigError
from ottla.pipelines.rows import BEFORE, HOLDS, column


def touched(frame: DataFrame, holds: Column, step: Callable[[DataFrame], DataFrame]) -> DataFrame:
    """The rows, those of which it holds after the step; a field that some of them lack is null in those."""
    names = frame.columns
    marked = frame.select(*map(column, names), F.struct(*map(column, names)).alias(BEFORE), holds.alias(HOLDS))
    after = step(marked)
    there = [name for name in after.columns if name not in (BEFORE, HOLDS)]
    for name in there:
        old, new = (one.schema[name].dataType if name in one.columns else None for one in (frame, after))
        if old is not None and new is not None and old != new:
            raise ConfigError(
                f"with a predicate the field {name!r} would be {new.simpleString()} in some records and "
                f"{old.simpleString()} in others; leave the predicate out, or keep the type"
            )
    chosen = []
    for name in [*there, *(name for name in names if name not in there)]:
        new_one = column(name) if name in there else F.lit(None)
        old_one = column(BEFORE)[name] if name in names else F.lit(None)
        chosen.append(F.when(column(HOLDS), new_one).otherwise(old_one).alias(name))
    return after.select(*chosen)
