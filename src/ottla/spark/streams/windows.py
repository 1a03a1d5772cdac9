"""Windows of time: tumbling, hopping and session windows, with grace for late rows.

Kafka Streams' TimeWindows and SessionWindows. A window is closed once a row was seen that is later than its end plus
the grace. Spark evaluates that between micro-batches, so a row that is too late in Kafka Streams may still be accepted
if it is in the same batch as the row that closes the window. Grace is the watermark of the whole stream, over all
partitions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.group import GroupedData

from ottla.spark.streams.names import checked_columns, quoted, time_of

SUPPRESSED: Final = "append"
"""The output mode of Kafka Streams' `suppress(untilWindowCloses)`: each window is written once, when it is closed."""
EAGER: Final = "update"
"""The output mode without suppress: a window is written after each change."""
Mode = Literal["append", "update"]


def tumbling(
    frame: DataFrame, time: str, size: str, *, grace: str = "0 seconds", keys: Sequence[str] = ()
) -> GroupedData:
    """Return adjacent windows of a size: `tumbling(clicks, "at", "1 minute", keys=["page"]).count()`.

    Kafka Streams' `groupByKey().windowedBy(TimeWindows.ofSizeAndGrace(size, grace))`. The column `window` has `start`
    and `end`.
    """
    late = frame.withWatermark(time_of(frame, time), grace)
    return late.groupBy(F.window(quoted(time), size), *map(quoted, checked_columns(frame, *keys)))


def hopping(
    frame: DataFrame, time: str, size: str, advance: str, *, grace: str = "0 seconds", keys: Sequence[str] = ()
) -> GroupedData:
    """Return windows of a size that start every `advance`, so a row is in several.

    Kafka Streams' `TimeWindows.ofSizeAndGrace(size, grace).advanceBy(advance)`.
    """
    late = frame.withWatermark(time_of(frame, time), grace)
    return late.groupBy(F.window(quoted(time), size, advance), *map(quoted, checked_columns(frame, *keys)))


def session(frame: DataFrame, time: str, gap: str, *, grace: str = "0 seconds", keys: Sequence[str]) -> GroupedData:
    """Return windows that end `gap` after their last row.

    Kafka Streams' `SessionWindows.ofInactivityGapAndGrace(gap, grace)`. The end is the last row plus the gap; in Kafka
    Streams it is the time of the last row. Spark supports them for keys only, and writes them in `append` mode only.
    """
    late = frame.withWatermark(time_of(frame, time), grace)
    return late.groupBy(
        F.session_window(quoted(time), gap).alias("window"), *map(quoted, checked_columns(frame, *keys))
    )
