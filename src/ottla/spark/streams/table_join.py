"""`table_join`: each row of a stream with what a table has for its key at that time.

Both come to one stateful operator: rows of the table are remembered, rows of the stream are answered. Kafka Streams works off both
sides by their timestamps as well as it can; so does this, within a micro-batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, Literal

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import StructField, StructType

from ottla.spark.streams.names import listed, quoted, refuse_clashes, there, time_of

STORE = "spark.sql.streaming.stateStore.providerClass"
ROCKS = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
"""The only store in which Spark keeps what this needs."""
TOMBSTONE = "_tombstone"
BEGINNING = datetime(1, 1, 1, tzinfo=UTC)


def table_join(
    stream: DataFrame,
    table: DataFrame,
    keys: str | Sequence[str],
    *,
    time: str = "timestamp",
    how: Literal["inner", "left"] = "inner",
) -> DataFrame:
    """Each row of `stream`, with the columns of the last row that `table` had for its keys.

    Kafka Streams' `stream.join(table, joiner)` and, with `how="left"`, `leftJoin`. Both have the keys and the column `time`. A row of
    the table whose column `_tombstone` is true takes its key away. A row of the stream is answered once, with what is
    known then; what the table says later changes nothing.
    """
    chosen = listed(keys)
    for frame in (stream, table):
        there(frame, *chosen)
        time_of(frame, time)
    mine = stream.columns
    other = [name for name in table.columns if name not in (*chosen, time, TOMBSTONE) and not name.startswith("_")]
    refuse_clashes(mine, other)
    keep_state_in_rocksdb(stream.sparkSession)
    known = StructType([StructField(name, table.schema[name].dataType) for name in other])
    gone = F.coalesce(quoted(TOMBSTONE), F.lit(False)) if TOMBSTONE in table.columns else F.lit(False)
    asked = StructType([StructField(name, stream.schema[name].dataType) for name in mine])
    streams = tagged(stream, chosen, time, F.struct(*map(quoted, mine)), F.lit(None).cast(known), F.lit(False), 1)
    tables = tagged(table, chosen, time, F.lit(None).cast(asked), F.struct(*map(quoted, other)), gone, 0)
    both = streams.unionByName(tables).groupBy(*(f"key_{number}" for number in range(len(chosen))))
    result = StructType([*asked.fields, *known.fields])
    return both.transformWithState(TableJoin(known, result.names, how == "left"), result, "Append", "None")


def tagged(frame: DataFrame, keys: list[str], time: str, asked: Any, known: Any, gone: Any, side: int) -> DataFrame:
    """Rows of one side, as the operator takes them; those of the table come first at one time."""
    named = [quoted(name).alias(f"key_{number}") for number, name in enumerate(keys)]
    return frame.select(
        *named,
        quoted(time).cast("timestamp").alias("moment"),
        F.lit(side).alias("side"),
        asked.alias("asked"),
        known.alias("known"),
        gone.alias("gone"),
    )


def keep_state_in_rocksdb(spark: SparkSession) -> None:
    """For queries that begin from now on; those that have a checkpoint stay as they are."""
    if spark.conf.get(STORE, "") != ROCKS:
        spark.conf.set(STORE, ROCKS)


class TableJoin(StatefulProcessor):
    """What is done for each key in a micro-batch."""

    def __init__(self, known: StructType, names: Sequence[str], keep_all: bool) -> None:
        self.known, self.names, self.keep_all = known, names, keep_all

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.latest = handle.getValueState("latest", self.known)
        self.answer = Row(*self.names)

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Row]:
        latest = self.latest.get() if self.latest.exists() else None
        before = latest
        for row in sorted(rows, key=lambda one: (moment_of(one), one.side)):
            if row.side == 0:
                latest = None if row.gone else values_of(row.known)
            elif latest is not None or self.keep_all:
                yield self.answer(*values_of(row.asked), *(latest or [None] * len(self.known)))
        if latest is None and before is not None:
            self.latest.clear()
        elif latest is not None and latest != before:
            self.latest.update(latest)

    def close(self) -> None:
        """Asked for by Spark, also of what has nothing to close."""


def values_of(struct: Any) -> tuple[Any, ...]:
    """The fields of a row within a row, which Spark hands over as a dict."""
    return tuple(struct.values()) if isinstance(struct, dict) else tuple(struct)


def moment_of(row: Row) -> datetime:
    """A row without a time is older than all that have one."""
    moment: datetime | None = row.moment
    return BEGINNING if moment is None else moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
