"""`type: rate`: numbered rows at a steady rate, for experiments."""

from __future__ import annotations

from typing import Literal

from pydantic import Field
from pyspark.sql import DataFrame, SparkSession

from ottla.pipelines.pipeline_context import PipelineContext
from ottla.pipelines.sources.source import Source


class RateSource(Source):
    """Rows with the columns `timestamp` and `value`, which counts from 0."""

    type: Literal["rate"]
    rows_per_second: int = Field(default=1, ge=1)
    """Rows per second."""

    def describe(self) -> str:
        return f"rate {self.rows_per_second}/s"

    def identity(self) -> str:
        return "rate"

    def read(self, spark: SparkSession, context: PipelineContext, tolerant: bool) -> DataFrame:
        return spark.readStream.format("rate").option("rowsPerSecond", str(self.rows_per_second)).load()
