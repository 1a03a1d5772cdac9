"""`type: spark`: any other format that Spark can write streams to."""

from __future__ import annotations

from typing import ClassVar, Literal

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from ottla.pipelines.model import Scalar
from ottla.pipelines.place import of_key
from ottla.pipelines.rows import beside
from ottla.pipelines.sinks.batch_log import FILE_FORMATS, BatchLog, Owner, cannot_begin_anew, ensure_fits
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

    def folder(self, around: Surroundings) -> str | None:
        """Return the folder that Spark's file sink would write to; None if the format has no such sink, or names no folder."""
        options = {name.lower(): text for name, text in around.options(self.options).items()}
        return options.get("path") if self.format.lower() in FILE_FORMATS else None

    def check(self, frame: DataFrame, around: Surroundings) -> None:
        if (folder := self.folder(around)) is not None:
            with of_key("options"):
                ensure_fits(BatchLog(frame.sparkSession, folder), around.name, around.home, around.checkpoint)

    def cannot_begin_anew(self, around: Surroundings) -> str | None:
        folder = self.folder(around)
        return None if folder is None else cannot_begin_anew(folder)

    def start(self, frame: DataFrame, around: Surroundings, how: How) -> StreamingQuery:
        if (folder := self.folder(around)) is not None:
            log = BatchLog(frame.sparkSession, folder)
            ensure_fits(log, around.name, around.home, around.checkpoint)
            log.claim(Owner(around.name, str(around.home)))
        writer = how.writer(frame.drop(*beside(frame))).format(self.format)
        return writer.options(**around.options(self.options)).start()
