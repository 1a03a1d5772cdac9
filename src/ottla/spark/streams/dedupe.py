"""`dedupe`: the first row of each key."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame

from ottla.errors import ConfigError
from ottla.spark.streams.names import listed, there, time_of


def dedupe(
    frame: DataFrame, keys: str | Sequence[str], *, time: str | None = None, within: str | None = None
) -> DataFrame:
    """The first row of each key, and none that says the same `within` that time of it: `dedupe(events, "id", time="at", within="1 hour")`.

    Kafka Streams has no operation for it; there one writes a processor with a window store. Without `within` every key is
    remembered for ever. With it, rows that are later than that are left out as well.
    """
    chosen = there(frame, *listed(keys))
    if (time is None) != (within is None):
        raise ConfigError("time and within go together: the column of the time, and how long a key is remembered")
    if time is None or within is None:
        return frame.dropDuplicates(chosen)
    return frame.withWatermark(time_of(frame, time), within).dropDuplicatesWithinWatermark(chosen)
