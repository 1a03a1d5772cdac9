"""`sql:`: a query over the table `input`, which has the rows of the previous transform, and over the pipeline's other inputs."""

from __future__ import annotations

import threading

from pydantic import field_validator
from pyspark.sql import DataFrame

from ottla.pipelines.model import Model
from ottla.pipelines.pipeline_context import PipelineContext
from ottla.pipelines.rows import checked_names
from ottla.pipelines.transforms.span import span
from ottla.pipelines.transforms.transform import Transform

INPUT = "input"
ONE_AT_A_TIME = threading.Lock()
"""Temporary views belong to the session, and all pipelines share one session. Only one query at a time may be analyzed
with its views.
"""


class Watermark(Model):
    """The lateness of rows: state of older rows is dropped, and older windows are final."""

    column: str
    """A column of type timestamp."""
    delay: str
    """For example `10 seconds`."""

    _span = field_validator("delay")(span)


class SqlTransform(Transform):
    """Spark SQL over the table `input`, which has the rows so far."""

    is_timeless = True

    sql: str
    """The query, for example `select id, amount * 2 as double from input where amount > 0`."""
    watermark: Watermark | None = None
    """The watermark on a column of `input`; aggregations over time need one."""

    @field_validator("sql")
    @classmethod
    def sql_is_there(cls, text: str) -> str:
        if not text.strip():
            raise ValueError("it is empty; write a query over the table input, such as `select * from input`")
        return text

    def describe(self) -> str:
        return "sql " + " ".join(self.sql.split())

    def apply(self, frame: DataFrame, context: PipelineContext) -> DataFrame:
        if self.watermark is not None:
            checked_names(frame.columns, [self.watermark.column])
            frame = frame.withWatermark(self.watermark.column, self.watermark.delay)
        with ONE_AT_A_TIME:
            tables = {INPUT: frame, **context.inputs}
            for name, rows in tables.items():
                rows.createOrReplaceTempView(name)
            try:
                return frame.sparkSession.sql(self.sql)
            finally:
                for name in tables:
                    frame.sparkSession.catalog.dropTempView(name)
