"""The base of Kafka Connect's transforms."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import Field
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ottla.errors import ConfigError
from ottla.pipelines.model import NameList
from ottla.pipelines.pipeline_context import PipelineContext
from ottla.pipelines.rows import BEFORE, HOLDS, column, failed_row, with_failed
from ottla.pipelines.transforms.transform import Transform

PACKAGE = "org.apache.kafka.connect.transforms."
KEY, VALUE = "$Key", "$Value"
STAGE = "TRANSFORMATION"
"""The stage of transforms, in Kafka Connect's headers of dead letters."""


Names = Annotated[NameList, Field(min_length=1)]


class ConnectTransform(Transform):
    """A transform of Kafka Connect."""

    is_timeless = True
    has_parts: ClassVar[bool] = True
    """True if it works on the key or the value, chosen by the end of its name."""

    type: str
    """The name in Kafka Connect, for example `InsertField`; `$Key` at the end selects the key, `$Value` or nothing the
    value.
    """
    predicate: str | None = None
    """The name of one of the pipeline's `predicates`: only records that fulfil it are transformed."""
    negate: bool = False
    """Transform the records that do not fulfil the predicate instead."""

    @property
    def part(self) -> Literal["key", "value"]:
        return "key" if self.type.endswith(KEY) else "value"

    def describe(self) -> str:
        return self.type.removeprefix(PACKAGE)

    def apply(self, frame: DataFrame, context: PipelineContext) -> DataFrame:
        step = self.tried if context.tolerant else self.step
        if self.predicate is None:
            return step(frame)
        holds = context.predicates[self.predicate].holds(frame)
        return apply_where(frame, ~holds if self.negate else holds, step)

    def step(self, frame: DataFrame) -> DataFrame:
        """Return the transformed rows."""
        return frame

    def tried(self, frame: DataFrame) -> DataFrame:
        """Return the transformed rows; rows that cannot be transformed have the column `_failed`."""
        return self.step(frame)

    def with_untried(self, frame: DataFrame, old: Mapping[str, Column], new: Mapping[str, Column]) -> DataFrame:
        """Mark the rows as failed in which a field that was not null became null."""
        reasons = [
            F.when(
                one.isNotNull() & new[name].isNull(),
                F.concat(F.lit(self.complaint(name)), F.coalesce(one.cast("string"), F.lit("?"))),
            )
            for name, one in old.items()
        ]
        return with_failed(frame, failed_row(STAGE, F.coalesce(*reasons)))

    def complaint(self, name: str) -> str:
        """Return the error text in front of the value of a field."""
        return f"{self.describe()} cannot read {name} = "


def name_of(text: str) -> str:
    """Return the name without its package, and without `$Key` or `$Value`."""
    return text.removeprefix(PACKAGE).removesuffix(KEY).removesuffix(VALUE)


def apply_where(frame: DataFrame, holds: Column, step: Callable[[DataFrame], DataFrame]) -> DataFrame:
    """Return the rows, transformed where `holds` is true; a field that some of the rows lack is null in them."""
    names = frame.columns
    marked = frame.select(*map(column, names), F.struct(*map(column, names)).alias(BEFORE), holds.alias(HOLDS))
    after = step(marked)
    there = [name for name in after.columns if name not in (BEFORE, HOLDS)]
    for name in there:
        old, new = (one.schema[name].dataType if name in one.columns else None for one in (frame, after))
        if old is not None and new is not None and old != new:
            raise ConfigError(
                f"with a predicate the field {name!r} would be {new.simpleString()} in some records and "
                f"{old.simpleString()} in others; leave the predicate out, or keep the type"
            )
    chosen = []
    for name in [*there, *(name for name in names if name not in there)]:
        new_one = column(name) if name in there else F.lit(None)
        old_one = column(BEFORE)[name] if name in names else F.lit(None)
        chosen.append(F.when(column(HOLDS), new_one).otherwise(old_one).alias(name))
    return after.select(*chosen)
