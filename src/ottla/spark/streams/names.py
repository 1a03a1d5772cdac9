"""Checks of columns given by name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DateType, TimestampNTZType, TimestampType

from ottla.config import unknown
from ottla.errors import ConfigError


def quoted(name: str) -> Column:
    """Return the column of this name, with any characters in the name."""
    return F.col("`" + name.replace("`", "``") + "`")


def checked_columns(frame: DataFrame, *names: str) -> list[str]:
    """Return the names; ConfigError if a column does not exist."""
    for name in names:
        if name not in frame.columns:
            text = unknown("column", name, frame.columns)
            raise ConfigError(text if "did you mean" in text else f"{text}; the columns are {', '.join(frame.columns)}")
    return list(names)


def as_list(keys: str | Sequence[str]) -> list[str]:
    """Return one or several keys as a list; ConfigError if there is none."""
    found = [keys] if isinstance(keys, str) else list(keys)
    if not found:
        raise ConfigError("keys is empty; give a column")
    return found


def time_of(frame: DataFrame, name: str) -> str:
    """Return the name of a column; ConfigError if it is not a time."""
    (name,) = checked_columns(frame, name)
    kind = frame.schema[name].dataType
    if not isinstance(kind, TimestampType | TimestampNTZType | DateType):
        raise ConfigError(f"column {name!r} is {kind.simpleString()}, not a timestamp; cast it")
    return name


def refuse_clashes(left: Iterable[str], right: Iterable[str]) -> None:
    """Raise ConfigError if the sides of a join have a column in common other than the keys."""
    both = sorted(set(left) & set(right))
    if both:
        raise ConfigError(f"both sides have a column {both[0]!r}; rename or drop one of them")
