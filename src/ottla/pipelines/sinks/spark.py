"""`type: spark`: any other format that Spark can write streams to."""

from __future__ import annotations

from typing import ClassVar, Literal

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from ottla.pipelines.model import Scalar
from ottla.pipelines.rows import beside
from ottla.pipelines.sinks.sink import Sink
from ottla.pipelines.surroundings import How, Surroundings


class SparkSink(Sink):
    """Passed through to Spark as it is."""

    guarantee: ClassVar[str] = "what the format promises; at least once where it promises nothing"
    type: Literal["spark"]
    format: str
    """The name of the format."""
    options: dict[str, Scalar] = {}
    """Its options."""

    def describe(self) -> str:
        return f"Spark's {self.format}"

    def start(self, frame: DataFrame, around: Surroundings, how: How) -> StreamingQuery:
        writer = how.writer(frame.drop(*beside(frame))).format(self.format)
        return writer.options(**around.options(self.options)).start()
