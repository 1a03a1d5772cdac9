"""What every transform has."""

from __future__ import annotations

from typing import ClassVar

from pyspark.sql import DataFrame

from ottla.pipelines.model import Model
from ottla.pipelines.surroundings import Surroundings


class Transform(Model):
    """A step from rows to rows."""

    is_timeless: ClassVar[bool] = False
    """Whether it is known to do nothing but when there are rows, and to read no other stream."""

    def describe(self) -> str:
        return type(self).__name__

    def apply(self, frame: DataFrame, around: Surroundings) -> DataFrame:
        """The rows after it, batch or stream; ConfigError where they have not what it needs."""
        return frame
