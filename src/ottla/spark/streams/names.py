"""Columns that a helper is told by name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DateType, TimestampNTZType, TimestampType

from ottla.config import unknown
from ottla.errors import ConfigError


def quoted(name: str) -> Column:
    """The column of this name, whatever is in the name."""
    return F.col("`" + name.replace("`", "``") + "`")


def there(frame: DataFrame, *names: str) -> list[str]:
    """The names; ConfigError where a column is not there."""
    for name in names:
        if name not in frame.columns:
            told = unknown("column", name, frame.columns)
            raise ConfigError(told if "did you mean" in told else f"{told}; the columns are {', '.join(frame.columns)}")
    return list(names)


def listed(keys: str | Sequence[str]) -> list[str]:
    """One key, or several; ConfigError where there is none."""
    found = [keys] if isinstance(keys, str) else list(keys)
    if not found:
        raise ConfigError("keys is empty; name a column")
    return found


def time_of(frame: DataFrame, name: str) -> str:
    """A column that is a time; ConfigError where it is none."""
    (name,) = there(frame, name)
    kind = frame.schema[name].dataType
    if not isinstance(kind, TimestampType | TimestampNTZType | DateType):
        raise ConfigError(f"column {name!r} is {kind.simpleString()}, and no timestamp; cast it")
    return name


def refuse_clashes(left: Iterable[str], right: Iterable[str]) -> None:
    """Both sides of a join may have the keys, and nothing else, in common."""
    both = sorted(set(left) & set(right))
    if both:
        raise ConfigError(f"both sides have a column {both[0]!r}; rename or leave out that of one of them")
