"""`type: console`: rows in the terminal, for trying things out."""

from __future__ import annotations

from typing import Literal

from pydantic import Field
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from ottla.pipelines.rows import beside
from ottla.pipelines.sinks.sink import Sink
from ottla.pipelines.surroundings import How, Surroundings


class ConsoleSink(Sink):
    """Each batch as a table on standard output."""

    type: Literal["console"]
    rows: int = Field(default=20, ge=1)
    """The most rows of a batch that are shown."""

    def start(self, frame: DataFrame, around: Surroundings, how: How) -> StreamingQuery:
        writer = how.writer(frame.drop(*beside(frame))).format("console")
        return writer.option("numRows", str(self.rows)).option("truncate", "false").start()
