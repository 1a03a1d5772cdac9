"""`stream_join`: rows of two streams with the same keys that are close in time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ottla.spark.streams.names import listed, quoted, refuse_clashes, there, time_of

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
    """Each pair of rows whose keys are equal and whose times differ by `within` at most.

    Kafka Streams' `left.join(right, joiner, JoinWindows.ofTimeDifferenceAndGrace(within, grace))`, `leftJoin` and
    `outerJoin`. A row that has found no partner comes out, where `how` lets it, once no partner can come any more. The columns
    are the keys, then those of the left, then those of the right.
    """
    chosen = listed(keys)
    there(left, *chosen)
    there(right, *chosen)
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
