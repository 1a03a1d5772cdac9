"""`as_table`: the latest row of each key, which is what Kafka Streams calls a KTable."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ottla.spark.streams.names import listed, quoted, there

OFFSET = "offset"


def as_table(frame: DataFrame, keys: str | Sequence[str] = "key", *, latest: str = OFFSET) -> DataFrame:
    """The last row of each key: `as_table(prices, "symbol", latest="at")`.

    Kafka Streams' `builder.table(topic)` and `stream.toTable()`. Written with the output mode `update`, it is the stream of
    changes of the table: a row for each key that changed in a micro-batch. A tombstone is a row whose value is null; it replaces the row
    of its key, and written to a compacted topic it deletes it there. In a batch it is the table as it is.

    Which row is the last says the column `latest`: `offset` for records of a topic, as a key's records are all in one partition.
    The state remembers each key, also a deleted one, as long as the query lives.
    """
    chosen = listed(keys)
    there(frame, *chosen, latest)
    others = [name for name in frame.columns if name not in chosen]
    last = F.max_by(F.struct(*map(quoted, others)), quoted(latest)).alias("last")
    rows = frame.groupBy(*map(quoted, chosen)).agg(last)
    # In the order in which the columns came.
    return rows.select(*(quoted(name) if name in chosen else F.col("last")[name].alias(name) for name in frame.columns))
