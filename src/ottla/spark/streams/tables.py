"""`as_table`: the latest row of each key, the KTable of Kafka Streams."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ottla.spark.streams.names import as_list, checked_columns, quoted

OFFSET = "offset"


def as_table(frame: DataFrame, keys: str | Sequence[str] = "key", *, latest: str = OFFSET) -> DataFrame:
    """Return the last row of each key: `as_table(prices, "symbol", latest="at")`.

    Kafka Streams' `builder.table(topic)` and `stream.toTable()`. With the output mode `update` the result is the stream
    of changes of the table: a row for each key that changed in a micro-batch. A tombstone is a row with a null value;
    it replaces the row of its key, and in a compacted topic it deletes the key. In a batch the result is the table.

    The column `latest` orders the rows: `offset` for records of a topic, because the records of a key are all in one
    partition. The state has each key, including deleted ones, for as long as the query exists.
    """
    chosen = as_list(keys)
    checked_columns(frame, *chosen, latest)
    others = [name for name in frame.columns if name not in chosen]
    last = F.max_by(F.struct(*map(quoted, others)), quoted(latest)).alias("last")
    rows = frame.groupBy(*map(quoted, chosen)).agg(last)
    # in the order of the input's columns
    return rows.select(*(quoted(name) if name in chosen else F.col("last")[name].alias(name) for name in frame.columns))
