"""Kafka Streams' operations as transforms of a file: `Window`, `Aggregate`, `AsTable`, `Dedupe`, `StreamJoin`, `TableJoin`."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, field_validator, model_validator
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.group import GroupedData

from ottla.config import unknown
from ottla.errors import ConfigError
from ottla.pipelines.pipeline_context import PipelineContext
from ottla.pipelines.rows import KEY, OFFSET, TIMESTAMP, checked_names, column, metadata_columns
from ottla.pipelines.transforms.connect.connect_transform import Names
from ottla.pipelines.transforms.span import span
from ottla.pipelines.transforms.transform import Transform
from ottla.spark import streams


class StreamStep(Transform):
    type: str
    """The name of the operation."""

    def describe(self) -> str:
        return self.type


class Aggregating(StreamStep):
    aggregates: dict[str, str] = Field(min_length=1)
    """The new columns with the SQL of each, for example `{n: "count(*)", total: sum(amount)}`."""

    def columns(self) -> list[Column]:
        return [F.expr(text).alias(name) for name, text in self.aggregates.items()]


class Aggregate(Aggregating):
    """Aggregates over all rows of each key; needs outputMode: update. Kafka Streams' `groupByKey().aggregate()`."""

    type: Literal["Aggregate"]
    keys: Names
    """The columns to group by."""

    def apply(self, frame: DataFrame, context: PipelineContext) -> DataFrame:
        return frame.groupBy(*map(column, checked_names(frame.columns, self.keys))).agg(*self.columns())


class Window(Aggregating):
    """Aggregates over windows of time.

    `size` alone gives adjacent windows, with `advance` they overlap, and `gap` gives sessions that end with a pause. The result has `window_start` and `window_end`. Kafka Streams' `windowedBy()`.
    """

    type: Literal["Window"]
    time: str
    """The column with the time."""
    size: str | None = None
    """The length of a window, for example `1 minute`."""
    advance: str | None = None
    """The time from the start of a window to the start of the next."""
    gap: str | None = None
    """The pause that ends a session."""
    grace: str = "0 seconds"
    """The lateness of rows. After it a window is closed, and written if outputMode is append (the default)."""
    keys: Names | None = None
    """The columns to group by."""

    _spans = field_validator("size", "advance", "gap", "grace")(span)

    @model_validator(mode="after")
    def it_is_one_kind(self) -> Window:
        if (self.size is None) == (self.gap is None):
            raise ValueError("give either size, the length of all windows, or gap, the pause that ends a session")
        if self.advance is not None and self.size is None:
            raise ValueError("advance needs size; leave it out")
        if self.gap is not None and not self.keys:
            raise ValueError("sessions need keys; name the columns under keys")
        return self

    def apply(self, frame: DataFrame, context: PipelineContext) -> DataFrame:
        checked_names(frame.columns, [self.time, *(self.keys or ())])
        rows = self.windows(frame).agg(*self.columns())
        ends = [F.col("window")[end].alias(f"window_{end}") for end in ("start", "end")]
        return rows.select(*ends, *(column(name) for name in rows.columns if name != "window"))

    def windows(self, frame: DataFrame) -> GroupedData:
        keys = self.keys or []
        if self.size is None:
            assert self.gap is not None
            return streams.session(frame, self.time, self.gap, grace=self.grace, keys=keys)
        if self.advance is None:
            return streams.tumbling(frame, self.time, self.size, grace=self.grace, keys=keys)
        return streams.hopping(frame, self.time, self.size, self.advance, grace=self.grace, keys=keys)


class AsTable(StreamStep):
    """The latest row of each key; a tombstone deletes. Needs outputMode: update. Kafka Streams' `toTable()`."""

    type: Literal["AsTable"]
    keys: Names = [KEY]
    """The columns that identify a row of the table; the record's key by default."""
    latest: str = OFFSET
    """The column that orders the rows; the row with the highest value is the latest."""

    def apply(self, frame: DataFrame, context: PipelineContext) -> DataFrame:
        checked_names(frame.columns, [*self.keys, self.latest])
        return streams.as_table(frame, self.keys, latest=self.latest)


class Dedupe(StreamStep):
    """The first row of each key; rows with the same key are dropped, for ever or for a time after it."""

    type: Literal["Dedupe"]
    keys: Names
    """The columns that identify a row."""
    time: str | None = None
    """The column with the time."""
    within: str | None = None
    """The time for which a key is remembered, for example `1 hour`; for ever without it."""

    _spans = field_validator("within")(span)

    def apply(self, frame: DataFrame, context: PipelineContext) -> DataFrame:
        checked_names(frame.columns, self.keys)
        return streams.dedupe(frame, self.keys, time=self.time, within=self.within)


class StreamJoin(StreamStep):
    """Pairs of rows, of this and of one of the `inputs`, that are close in time. Kafka Streams' `join()` with `JoinWindows`."""

    type: Literal["StreamJoin"]
    input: str
    """The name of the other stream under `inputs`."""
    keys: Names
    """Columns of both streams that are equal."""
    time: str
    """The column with the time in this stream."""
    input_time: str
    """The column with the time in the other stream."""
    within: str
    """The greatest distance in time, for example `10 minutes`."""
    grace: str = "0 seconds"
    """The lateness of rows."""
    how: Literal["inner", "left", "outer"] = "inner"
    """The rows without a partner that are included: none, those of this stream, or all."""

    _spans = field_validator("within", "grace")(span)

    def apply(self, frame: DataFrame, context: PipelineContext) -> DataFrame:
        other = other_of(context, self.input)
        bare = other.drop(
            *(name for name in metadata_columns(other) if name != self.input_time and name not in self.keys)
        )
        return streams.stream_join(
            frame,
            bare,
            self.keys,
            left_time=self.time,
            right_time=self.input_time,
            within=self.within,
            grace=self.grace,
            how=self.how,
        )


class TableJoin(StreamStep):
    """Each row with the values that a table, one of the `inputs`, had for its keys at that time.

    Kafka Streams' `join()` with a KTable.
    """

    type: Literal["TableJoin"]
    input: str
    """The name of the table's stream of changes under `inputs`."""
    keys: Names
    """Columns of both that are equal."""
    time: str = TIMESTAMP
    """The column with the time, which both have."""
    how: Literal["inner", "left"] = "inner"
    """With `left`, rows without an entry in the table are included."""

    def apply(self, frame: DataFrame, context: PipelineContext) -> DataFrame:
        return streams.table_join(frame, other_of(context, self.input), self.keys, time=self.time, how=self.how)


def other_of(context: PipelineContext, name: str) -> DataFrame:
    """Return one of the pipeline's inputs; ConfigError if there is none of this name."""
    found: DataFrame | None = context.inputs.get(name)
    if found is None:
        raise ConfigError(f"{unknown('input', name, context.inputs)}; define it under inputs, next to source")
    return found


STREAM_STEPS: dict[str, type[StreamStep]] = {
    one.__name__: one for one in (Aggregate, AsTable, Dedupe, StreamJoin, TableJoin, Window)
}
"""The operations by the value of `type`."""
