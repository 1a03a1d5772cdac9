"""`stream_join`: rows of two streams with the same keys that are close in time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ottla.spark.streams.names import as_list, checked_columns, quoted, refuse_clashes, time_of

How = Literal["inner", "left", "outer"]


def stream_join(
    left: DataFrame,
    right: DataFrame,
    keys: str | Sequence[str],
    *,
    left_time: str,
    right_time: str,
    within: str,
    grace: str = "0 seconds",
    how: How = "inner",
) -> DataFrame:
    """Return each pair of rows with equal keys and times that differ by at most `within`.

    Kafka Streams' `left.join(right, joiner, JoinWindows.ofTimeDifferenceAndGrace(within, grace))`, `leftJoin` and
    `outerJoin`. With `left` and `outer`, a row without a partner is returned once no partner can arrive any more. The
    columns are the keys, then those of the left, then those of the right.
    """
    chosen = as_list(keys)
    checked_columns(left, *chosen)
    checked_columns(right, *chosen)
    mine, other = ([name for name in one.columns if name not in chosen] for one in (left, right))
    refuse_clashes(mine, other)
    at, to = time_of(left, left_time), time_of(right, right_time)
    lefts = left.withWatermark(at, grace)
    rights = right.select(*(quoted(name).alias(f"right_{name}" if name in chosen else name) for name in right.columns))
    rights = rights.withWatermark(to, grace)
    span = F.expr(f"interval {within}")
    close = (quoted(to) >= quoted(at) - span) & (quoted(to) <= quoted(at) + span)
    for name in chosen:
        close = close & (quoted(name) == quoted(f"right_{name}"))
    joined = lefts.join(rights, close, how)
    found = [F.coalesce(quoted(name), quoted(f"right_{name}")).alias(name) for name in chosen]
    return joined.select(*found, *map(quoted, mine), *map(quoted, other))
