"""Windows of time: tumbling, hopping and session windows, with grace for what comes late.

Kafka Streams' TimeWindows and SessionWindows. A window is closed once a row has been seen that is later than its end and the
grace; Spark looks at that between micro-batches, so that a row that is late by Kafka Streams' count may still be taken if it comes
in the same batch as the one that makes it so. Grace is the watermark of the whole stream, over all partitions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.group import GroupedData

from ottla.spark.streams.names import quoted, there, time_of

SUPPRESSED: Final = "append"
"""Kafka Streams' `suppress(untilWindowCloses)`: the output mode in which each window is written once, when it is closed."""
EAGER: Final = "update"
"""Without suppress: the output mode in which a window is written whenever it has changed."""
Mode = Literal["append", "update"]


def tumbling(
    frame: DataFrame, time: str, size: str, *, grace: str = "0 seconds", keys: Sequence[str] = ()
) -> GroupedData:
    """Windows of a size, side by side: `tumbling(clicks, "at", "1 minute", keys=["page"]).count()`.

    Kafka Streams' `groupByKey().windowedBy(TimeWindows.ofSizeAndGrace(size, grace))`. The column `window` has `start` and `end`.
    """
    late = frame.withWatermark(time_of(frame, time), grace)
    return late.groupBy(F.window(quoted(time), size), *map(quoted, there(frame, *keys)))


def hopping(
    frame: DataFrame, time: str, size: str, advance: str, *, grace: str = "0 seconds", keys: Sequence[str] = ()
) -> GroupedData:
    """Windows of a size that begin every `advance`, so that a row is in several.

    Kafka Streams' `TimeWindows.ofSizeAndGrace(size, grace).advanceBy(advance)`.
    """
    late = frame.withWatermark(time_of(frame, time), grace)
    return late.groupBy(F.window(quoted(time), size, advance), *map(quoted, there(frame, *keys)))


def session(frame: DataFrame, time: str, gap: str, *, grace: str = "0 seconds", keys: Sequence[str]) -> GroupedData:
    """Windows that end `gap` after their last row.

    Kafka Streams' `SessionWindows.ofInactivityGapAndGrace(gap, grace)`, but that the end is last row and gap, where
    Kafka Streams says the time of the last row. Spark has them for keys only, and writes them in `append` mode only.
    """
    late = frame.withWatermark(time_of(frame, time), grace)
    return late.groupBy(F.session_window(quoted(time), gap).alias("window"), *map(quoted, there(frame, *keys)))
