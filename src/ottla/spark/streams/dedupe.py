"""`dedupe`: the first row of each key."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame

from ottla.errors import ConfigError
from ottla.spark.streams.names import as_list, checked_columns, time_of


def dedupe(
    frame: DataFrame, keys: str | Sequence[str], *, time: str | None = None, within: str | None = None
) -> DataFrame:
    """Return the first row of each key; later rows of the key are dropped, for the time `within` if given.

    For example `dedupe(events, "id", time="at", within="1 hour")`. Kafka Streams has no such operation, and needs a processor with a window store. Without `within` every key is
    remembered for ever. With it, rows later than that are dropped too.
    """
    chosen = checked_columns(frame, *as_list(keys))
    if (time is None) != (within is None):
        raise ConfigError(
            "time needs within, and within needs time: the column with the time, and the time for which a key is remembered"
        )
    if time is None or within is None:
        return frame.dropDuplicates(chosen)
    return frame.withWatermark(time_of(frame, time), within).dropDuplicatesWithinWatermark(chosen)
