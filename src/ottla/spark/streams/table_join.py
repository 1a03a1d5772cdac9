"""`table_join`: each row of a stream with the values that a table had for its key at that time.

Both sides are the input of one stateful operator, which stores rows of the table and joins rows of the stream. Kafka
Streams processes both sides in the order of their timestamps as far as possible; this operator does so within a
micro-batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, Literal

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import StructField, StructType

from ottla.spark.streams.names import as_list, checked_columns, quoted, refuse_clashes, time_of

STORE = "spark.sql.streaming.stateStore.providerClass"
ROCKS = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
"""The state store is set to RocksDB, because `transformWithState` does not support the default provider
(HDFSBackedStateStoreProvider).
"""
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
    """Return each row of `stream`, with the columns of the last row that `table` had for its keys.

    Kafka Streams' `stream.join(table, joiner)` and, with `how="left"`, `leftJoin`. Both sides have the keys and the
    column `time`. A row of the table with a true column `_tombstone` deletes its key. A row of the stream is joined
    once, with the table's values at that time; later changes of the table have no effect on it.
    """
    chosen = as_list(keys)
    for frame in (stream, table):
        checked_columns(frame, *chosen)
        time_of(frame, time)
    mine = stream.columns
    other = [name for name in table.columns if name not in (*chosen, time, TOMBSTONE) and not name.startswith("_")]
    refuse_clashes(mine, other)
    keep_state_in_rocksdb(stream.sparkSession)
    known = StructType([StructField(name, table.schema[name].dataType) for name in other])
    gone = F.coalesce(quoted(TOMBSTONE), F.lit(False)) if TOMBSTONE in table.columns else F.lit(False)
    asked = StructType([StructField(name, stream.schema[name].dataType) for name in mine])
    streams = tag_rows(stream, chosen, time, F.struct(*map(quoted, mine)), F.lit(None).cast(known), F.lit(False), 1)
    tables = tag_rows(table, chosen, time, F.lit(None).cast(asked), F.struct(*map(quoted, other)), gone, 0)
    both = streams.unionByName(tables).groupBy(*(f"key_{number}" for number in range(len(chosen))))
    result = StructType([*asked.fields, *known.fields])
    return both.transformWithState(TableJoinProcessor(known, result.names, how == "left"), result, "Append", "None")


def tag_rows(frame: DataFrame, keys: list[str], time: str, asked: Any, known: Any, gone: Any, side: int) -> DataFrame:
    """Return the rows of one side for the operator; at the same time, those of the table are first."""
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
    """Set the state store of queries that start from now on; queries with a checkpoint keep theirs."""
    if spark.conf.get(STORE, "") != ROCKS:
        spark.conf.set(STORE, ROCKS)


class TableJoinProcessor(StatefulProcessor):
    """Joins the rows of each key in a micro-batch."""

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
        """Do nothing; Spark requires the method."""


def values_of(struct: Any) -> tuple[Any, ...]:
    """Return the fields of a nested row, which Spark passes as a dict."""
    return tuple(struct.values()) if isinstance(struct, dict) else tuple(struct)


def moment_of(row: Row) -> datetime:
    """Return the time of a row; a row without one is older than all others."""
    moment: datetime | None = row.moment
    return BEGINNING if moment is None else moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
