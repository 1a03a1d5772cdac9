"""The base of all transforms."""

from __future__ import annotations

from typing import ClassVar

from pyspark.sql import DataFrame

from ottla.pipelines.model import Model
from ottla.pipelines.pipeline_context import PipelineContext


class Transform(Model):
    """A transform from rows to rows."""

    is_timeless: ClassVar[bool] = False
    """True if it is known to have no effect without new rows, and to read no other stream."""

    def describe(self) -> str:
        return type(self).__name__

    def apply(self, frame: DataFrame, context: PipelineContext) -> DataFrame:
        """Return the transformed rows, batch or stream; ConfigError if they lack a column that it needs."""
        return frame
