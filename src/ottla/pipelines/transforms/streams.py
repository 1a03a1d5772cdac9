"""Kafka Streams' operations as steps of a file: `Window`, `Aggregate`, `AsTable`, `Dedupe`, `StreamJoin`, `TableJoin`."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, field_validator, model_validator
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.group import GroupedData

from ottla.config import unknown
from ottla.errors import ConfigError
from ottla.pipelines.rows import KEY, OFFSET, TIMESTAMP, beside, column, known
from ottla.pipelines.surroundings import Surroundings
from ottla.pipelines.transforms.connect.connect_transform import Names
from ottla.pipelines.transforms.span import span
from ottla.pipelines.transforms.transform import Transform
from ottla.spark import streams


class StreamStep(Transform):
    type: str
    """Its name."""

    def describe(self) -> str:
        return self.type


class Aggregating(StreamStep):
    aggregates: dict[str, str] = Field(min_length=1)
    """The new columns, and the SQL of each, such as `{n: "count(*)", total: sum(amount)}`."""

    def columns(self) -> list[Column]:
        return [F.expr(text).alias(name) for name, text in self.aggregates.items()]


class Aggregate(Aggregating):
    """Aggregates over all rows of each key; needs outputMode: update. Kafka Streams' `groupByKey().aggregate()`."""

    type: Literal["Aggregate"]
    keys: Names
    """The columns whose values belong together."""

    def apply(self, frame: DataFrame, around: Surroundings) -> DataFrame:
        return frame.groupBy(*map(column, known(frame.columns, self.keys))).agg(*self.columns())


class Window(Aggregating):
    """Aggregates over windows of time: `size` alone are windows side by side, with `advance` they overlap, with `gap` instead they
    end with a pause. The result has `window_start` and `window_end`. Kafka Streams' `windowedBy()`.
    """

    type: Literal["Window"]
    time: str
    """The column of the time."""
    size: str | None = None
    """How long a window is, such as `1 minute`."""
    advance: str | None = None
    """How far the next window begins after the one before."""
    gap: str | None = None
    """The pause that ends a session."""
    grace: str = "0 seconds"
    """How late a row may be; then its window is closed, and with outputMode append, which is the default, written."""
    keys: Names | None = None
    """The columns whose values belong together."""

    _spans = field_validator("size", "advance", "gap", "grace")(span)

    @model_validator(mode="after")
    def it_is_one_kind(self) -> Window:
        if (self.size is None) == (self.gap is None):
            raise ValueError("give either size, of windows of one length, or gap, the pause that ends a session")
        if self.advance is not None and self.size is None:
            raise ValueError("advance is for windows with a size; leave it out")
        if self.gap is not None and not self.keys:
            raise ValueError("sessions are of keys; name them under keys")
        return self

    def apply(self, frame: DataFrame, around: Surroundings) -> DataFrame:
        known(frame.columns, [self.time, *(self.keys or ())])
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
    """The columns whose last row counts; by default the record's key."""
    latest: str = OFFSET
    """The column that says which row is the last."""

    def apply(self, frame: DataFrame, around: Surroundings) -> DataFrame:
        known(frame.columns, [*self.keys, self.latest])
        return streams.as_table(frame, self.keys, latest=self.latest)


class Dedupe(StreamStep):
    """The first row of each key, and none that says the same within a time of it."""

    type: Literal["Dedupe"]
    keys: Names
    """The columns that are the same."""
    time: str | None = None
    """The column of the time."""
    within: str | None = None
    """How long a key is remembered, such as `1 hour`; without it for ever."""

    _spans = field_validator("within")(span)

    def apply(self, frame: DataFrame, around: Surroundings) -> DataFrame:
        known(frame.columns, self.keys)
        return streams.dedupe(frame, self.keys, time=self.time, within=self.within)


class StreamJoin(StreamStep):
    """Pairs of rows, of this and of one of the `inputs`, that are close in time. Kafka Streams' `join()` with `JoinWindows`."""

    type: Literal["StreamJoin"]
    input: str
    """The name of the other stream under `inputs`."""
    keys: Names
    """Columns of both that are equal."""
    time: str
    """The column of the time here."""
    input_time: str
    """That of the other stream."""
    within: str
    """How far apart they may be, such as `10 minutes`."""
    grace: str = "0 seconds"
    """How late rows may be."""
    how: Literal["inner", "left", "outer"] = "inner"
    """Whether rows without a partner come out as well: none, those of here, or all."""

    _spans = field_validator("within", "grace")(span)

    def apply(self, frame: DataFrame, around: Surroundings) -> DataFrame:
        other = other_of(around, self.input)
        bare = other.drop(*(name for name in beside(other) if name != self.input_time and name not in self.keys))
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
    """Each row with what a table, one of the `inputs`, has for its keys at that time. Kafka Streams' `join()` with a KTable."""

    type: Literal["TableJoin"]
    input: str
    """The name of the table's stream of changes under `inputs`."""
    keys: Names
    """Columns of both that are equal."""
    time: str = TIMESTAMP
    """The column of the time, which both have."""
    how: Literal["inner", "left"] = "inner"
    """Whether rows of which the table knows nothing come out as well."""

    def apply(self, frame: DataFrame, around: Surroundings) -> DataFrame:
        return streams.table_join(frame, other_of(around, self.input), self.keys, time=self.time, how=self.how)


def other_of(around: Surroundings, name: str) -> DataFrame:
    """One of the pipeline's inputs."""
    found: DataFrame | None = around.inputs.get(name)
    if found is None:
        raise ConfigError(f"{unknown('input', name, around.inputs)}; name it under inputs, beside source")
    return found


STREAM_STEPS: dict[str, type[StreamStep]] = {
    one.__name__: one for one in (Aggregate, AsTable, Dedupe, StreamJoin, TableJoin, Window)
}
"""By what `type` says."""
