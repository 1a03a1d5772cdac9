"""What every transform has."""

from __future__ import annotations

from pyspark.sql import DataFrame

from ottla.pipelines.model import Model
from ottla.pipelines.surroundings import Surroundings


class Transform(Model):
    """A step from rows to rows."""

    def describe(self) -> str:
        return type(self).__name__

    def apply(self, frame: DataFrame, around: Surroundings) -> DataFrame:
        """The rows after it, batch or stream; ConfigError where they have not what it needs."""
        return frame
