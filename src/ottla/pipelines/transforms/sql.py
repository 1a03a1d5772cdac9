"""`sql:`: a query over the table `input`, which is the rows of the step before, and over the pipeline's other inputs."""

from __future__ import annotations

import threading

from pydantic import field_validator
from pyspark.sql import DataFrame

from ottla.pipelines.model import Model
from ottla.pipelines.rows import known
from ottla.pipelines.surroundings import Surroundings
from ottla.pipelines.transforms.span import span
from ottla.pipelines.transforms.transform import Transform

INPUT = "input"
ONE_AT_A_TIME = threading.Lock()
"""The name of the table is the session's: nobody else may look while it is there."""


class Watermark(Model):
    """How late rows may be: state of what is older is forgotten, and windows that are older are done."""

    column: str
    """A column of the type timestamp."""
    delay: str
    """Such as `10 seconds`."""

    _span = field_validator("delay")(span)


class SqlTransform(Transform):
    """Spark SQL over the rows so far, which are the table `input`."""

    is_timeless = True

    sql: str
    """The query, such as `select id, amount * 2 as double from input where amount > 0`."""
    watermark: Watermark | None = None
    """Of a column of `input`; aggregations over time need one."""

    @field_validator("sql")
    @classmethod
    def sql_is_there(cls, text: str) -> str:
        if not text.strip():
            raise ValueError("it is empty; write a query over the table input, such as `select * from input`")
        return text

    def describe(self) -> str:
        return "sql " + " ".join(self.sql.split())

    def apply(self, frame: DataFrame, around: Surroundings) -> DataFrame:
        if self.watermark is not None:
            known(frame.columns, [self.watermark.column])
            frame = frame.withWatermark(self.watermark.column, self.watermark.delay)
        with ONE_AT_A_TIME:
            tables = {INPUT: frame, **around.inputs}
            for name, rows in tables.items():
                rows.createOrReplaceTempView(name)
            try:
                return frame.sparkSession.sql(self.sql)
            finally:
                for name in tables:
                    frame.sparkSession.catalog.dropTempView(name)
